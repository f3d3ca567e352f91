'use strict';
// Runs as `node --expose-internals -e` in a box that waits for its program. Says "r" on standard
// output (or, for a module that it was to load and cannot, why not, and ends), blocks on standard input for one request (a length, then JSON), and becomes the Node that
// `node -e <code> -- <args>` would have been: the rest of standard input is the program's.
(() => {
	const fs = require('fs');
	const vm = require('vm');
	// What a first console.log, timer, promise or file access would load.
	for (const name of ['net', 'tty', 'stream', 'util', 'path', 'events', 'buffer', 'url',
		'timers', 'string_decoder'])
		require(name);

	// The frame of Node's own that stands below a program given by -e: "node:internal/...:51:3".
	const frame = /\n\s+at (node:internal\/main\/[^\s:]+):(\d+):(\d+)$/.exec(new Error().stack);
	const quietly = (f) => {
		const warn = process.emitWarning;
		process.emitWarning = () => {};
		try {
			return f();
		} catch {
			return undefined;
		} finally {
			process.emitWarning = warn;
		}
	};
	const evalScript = quietly(() => require('internal/process/execution').evalScript);
	const binding = quietly(() => require('internal/test/binding').internalBinding('fs'));

	// --expose-internals must not show.
	const Module = require('module');
	Module.builtinModules = Object.freeze(
		Module.builtinModules.filter((name) => !name.startsWith('internal/')));
	// Streams and functions that nearly every program uses are made and compiled ahead.
	const sink = new (require('stream').Writable)({ write: (data, encoding, done) => done() });
	new console.Console(sink).log('%s', 1, { a: [1] });
	void [process.stdout, process.stderr];
	if (evalScript)
		evalScript('[eval]', '0', false, false, false);

	// Found from where programs run, so that theirs are the same. What they print is for nobody.
	const load = (name) => {
		const { stdout, stderr } = process;
		stdout.write = stderr.write = () => true;
		try {
			require(require.resolve(name, { paths: ['/workspace', process.env.HOME, '/'] }));
		} catch (e) {
			fs.writeSync(1, `'${name}': ${String(e && e.message).split('\n')[0]}`);
			process.reallyExit(1);
		} finally {
			delete stdout.write;
			delete stderr.write;
		}
	};
	process.argv[1].split(',').filter(Boolean).forEach(load);

	const readExactly = (n) => {
		const data = Buffer.alloc(n);
		for (let at = 0; at < n;) {
			const got = fs.readSync(0, data, at, n - at, null);
			if (got === 0)
				process.reallyExit(0);
			at += got;
		}
		return data;
	};
	fs.writeSync(1, 'r');
	const request = JSON.parse(readExactly(readExactly(4).readUInt32LE(0)).toString());

	if (!request.stdin) { // the lowest free number is the one just closed
		fs.closeSync(0);
		fs.openSync('/dev/null', 'r');
	}
	for (const name of Object.keys(process.env))
		delete process.env[name];
	for (const pair of request.env) {
		const eq = pair.indexOf('=');
		process.env[pair.slice(0, eq)] = pair.slice(eq + 1);
	}
	process.chdir(request.cwd);
	process.argv.splice(1, Infinity, ...request.argv);
	process.execArgv = ['-e', request.code];
	quietly(() => Object.defineProperty(process, '_eval', { value: request.code }));
	for (const name of ['module', 'exports', 'require', '__filename', '__dirname'])
		delete globalThis[name];

	// Until a program sets it, the global `module` is the library of that name.
	const unsetModule = () => Object.defineProperty(globalThis, 'module', {
		get: () => Module,
		set: (value) => {
			delete globalThis.module;
			globalThis.module = value;
		},
		configurable: true,
		enumerable: false,
	});
	// Called by the event loop with no frame of ours below, placed where Node's own would be.
	const run = evalScript ||
		((name, code) => vm.runInThisContext(code, { filename: name, displayErrors: true }));
	const text = "(u,e,c)=>(u(),e('[eval]',c,false,false,false))";
	const place = frame && { filename: frame[1], lineOffset: frame[2] - 1,
		columnOffset: frame[3] - 1 - text.indexOf('e(') };
	const start = vm.runInThisContext(text, place || {});
	if (binding && binding.FSReqCallback && binding.stat) {
		const hook = new binding.FSReqCallback();
		Reflect.set(hook, 'oncomplete', start.bind(undefined, unsetModule, run, request.code));
		binding.stat('/', false, hook);
	} else {
		setImmediate(start, unsetModule, run, request.code);
	}
})();
