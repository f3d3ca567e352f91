'use strict';
// The Node of a context: runs one request after the other in a global scope that is kept. Requests
// and frames are as in context.py; TypeScript becomes JavaScript first.
(() => {
	const fs = require('fs');
	const net = require('net');
	const util = require('util');
	const vm = require('vm');
	const { PassThrough } = require('stream');

	const PIPE = 4096;
	const BODY = PIPE - 26;
	const VALUE_MAX = 7 << 20;
	const TEXT_MAX = 1 << 20;
	let token = '';
	let count = 0;
	let interrupt = null; // ends the run that is under way
	const queue = [];
	const pause = new Int32Array(new SharedArrayBuffer(4));

	// ---- frames ----

	const write = (fd, data) => { // whole, or not at all: no longer than a pipe takes at once
		for (;;) {
			try {
				fs.writeSync(fd, data);
				return;
			} catch (e) {
				if (e.code !== 'EAGAIN')
					throw e;
				Atomics.wait(pause, 0, 0, 1);
			}
		}
	};
	const frame = (kind, body) => Buffer.concat([
		Buffer.from(`\x1e${token}${kind}${body.length.toString(16).padStart(4, '0')}`), body]);
	const send = (kind, value) => {
		let body = Buffer.from(value === undefined ? '' : JSON.stringify(value));
		for (; body.length > BODY; body = body.subarray(BODY))
			write(1, frame('p', body.subarray(0, BODY)));
		write(1, frame(kind, body));
	};

	// ---- values ----

	const MIME = { 'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown',
		'image/svg+xml': 'svg', 'image/png': 'png', 'image/jpeg': 'jpeg', 'application/pdf': 'pdf',
		'text/latex': 'latex', 'application/json': 'json', 'application/javascript': 'javascript' };
	const plain = (value) => { // as JSON, when it is an object that JSON can say
		if (value === null || typeof value !== 'object' || util.types.isPromise(value))
			return undefined;
		try {
			const text = JSON.stringify(value);
			let depth = 0;
			let deepest = 0;
			for (const c of text.length < 65536 ? text : '')
				if (c === '{' || c === '[')
					deepest = Math.max(deepest, ++depth);
				else if (c === '}' || c === ']')
					depth--;
			return text.length > VALUE_MAX || deepest > 24 ? undefined : JSON.parse(text);
		} catch {
			return undefined;
		}
	};
	const describe = (value) => {
		const result = {};
		let text;
		try {
			text = typeof value === 'string' ? value : util.inspect(value);
		} catch (e) {
			text = `<cannot be shown: ${e}>`;
		}
		result.text = text.length > TEXT_MAX ? text.slice(0, TEXT_MAX) + '...' : text;
		const json = plain(value);
		if (json !== undefined)
			result.json = json;
		return result;
	};
	const show = (kind, result) => send(kind,
		Buffer.byteLength(JSON.stringify(result)) > VALUE_MAX ? { text: result.text || '' } : result);
	// Shows a value, or a map from MIME types to data.
	const display = (value) => {
		const types = value && typeof value === 'object' ? Object.keys(value) : [];
		if (types.length === 0 || !types.every((t) => t.includes('/')))
			return show('d', describe(value));
		const result = {};
		for (const type of types)
			if (MIME[type])
				result[MIME[type]] = type === 'application/json' ? value[type] :
					Buffer.isBuffer(value[type]) ? value[type].toString('base64') :
						String(value[type]);
			else
				result.extra = { ...result.extra, [type]: String(value[type]) };
		return show('d', result);
	};

	// ---- code ----

	// Copies strings, templates, comments and regular expressions as they are; calls at() at the
	// beginning of each statement of the top level, which may answer with a replacement.
	const rewrite = (code, at) => {
		let out = '';
		let depth = 0;
		let isStart = true;
		let last = '';
		const skip = /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"|`(?:[^`\\]|\\[^])*`/y;
		const regex = /\/(?:[^\/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
		const word = /[A-Za-z_$][\w$]*/y;
		for (let i = 0; i < code.length;) {
			let found = null;
			if (isStart && depth === 0 && /\S/.test(code[i]))
				found = at(code, i);
			if (found) {
				out += found.text;
				i = found.end;
				isStart = false;
				last = 'x';
				continue;
			}
			skip.lastIndex = regex.lastIndex = word.lastIndex = i;
			const m = skip.exec(code) || (/^$|[(,=:[!&|?{};+\-*%~^<>]|return/.test(last) &&
				regex.exec(code)) || word.exec(code);
			if (m) {
				out += m[0];
				i += m[0].length;
				if (!m[0].startsWith('//') && !m[0].startsWith('/*')) {
					last = m[0] === 'return' ? m[0] : 'x';
					isStart = false;
				}
				continue;
			}
			const c = code[i++];
			out += c;
			if ('([{'.includes(c))
				depth++;
			else if (')]}'.includes(c))
				depth--;
			if (depth === 0 && (c === ';' || c === '\n' || c === '}'))
				isStart = true;
			else if (!/\s/.test(c))
				isStart = false;
			if (!/\s/.test(c))
				last = c;
		}
		return out;
	};
	// A cell may be run again: what it declares is declared as often as one likes. Static imports
	// become dynamic ones, as a script has none.
	const statement = (code, i) => {
		const tail = code.slice(i);
		let m = /^(?:const|let)\b(?=\s*[\w$[{])/.exec(tail);
		if (m)
			return { text: 'var', end: i + m[0].length };
		m = /^class\s+([\w$]+)/.exec(tail);
		if (m)
			return { text: `var ${m[1]} = ${m[0]}`, end: i + m[0].length };
		m = /^import\s+(['"][^'"]+['"])[ \t]*;?/.exec(tail);
		if (m)
			return { text: `await import(${m[1]});`, end: i + m[0].length };
		m = /^import\s+([^'"();]+?)\s+from\s+(['"][^'"]+['"])[ \t]*;?/.exec(tail);
		if (!m)
			return null;
		const parts = [];
		const names = m[1].replace(/\{[^}]*\}/, (list) => {
			parts.push(list.replace(/\bas\b/g, ':'));
			return '';
		});
		for (const name of names.split(',').map((s) => s.trim()).filter(Boolean))
			if (name.startsWith('*'))
				parts.unshift(name.replace(/^\*\s*as\s+/, ''));
			else
				parts.unshift(`{ default: ${name} }`);
		const text = parts.map((p) => `var ${p} = await import(${m[2]});`).join(' ');
		return { text, end: i + m[0].length };
	};

	// Deno's REPL cannot be had as Node's can: there, what awaits becomes a function, whose names are
	// made global and which returns the value of its last statement.
	const isDeno = typeof Deno === 'object';
	const wrap = (code) => {
		const starts = [0];
		const names = [];
		const body = rewrite(code, (text, i) => {
			const tail = text.slice(i);
			const named = /^(?:async\s+)?function\s*\*?\s*([\w$]+)/.exec(tail);
			if (named)
				names.push(named[1]);
			const m = /^var\s+(?:([\w$]+)(?=\s*(?:;|\n|$))|(\{)|(?=[\w$[]))/.exec(tail);
			if (!m)
				return null;
			return { text: m[1] ? `${m[1]} = undefined` : m[2] ? '0, {' : '', end: i + m[0].length };
		});
		rewrite(body, (text, i) => (starts.push(i), null));
		const head = `(async () => { ${names.map((n) => `globalThis.${n} = ${n};`).join(' ')} `;
		for (const at of starts.reverse()) {
			const last = body.slice(at).replace(/[;\s]+$/, '');
			const text = `${head}${body.slice(0, at)}return (${last}\n); })()`;
			try {
				new vm.Script(text, options);
				return text;
			} catch {
				continue; // no expression
			}
		}
		return `${head}${body}\n})()`;
	};

	let typescript = null;
	const untype = (code) => {
		const { stripTypeScriptTypes } = require('module');
		if (stripTypeScriptTypes) {
			const warn = process.emitWarning;
			process.emitWarning = () => {};
			try {
				return stripTypeScriptTypes(code, { mode: 'transform' });
			} finally {
				process.emitWarning = warn;
			}
		}
		for (const name of ['typescript', '/usr/share/nodejs/typescript',
			'/usr/local/lib/node_modules/typescript', '/usr/lib/node_modules/typescript'])
			try {
				typescript = typescript || require(name);
			} catch {
				continue;
			}
		if (!typescript)
			throw new Error('TypeScript is not available: this machine has neither a Node that ' +
				'strips types nor the typescript package');
		const { ScriptTarget, ModuleKind } = typescript;
		const done = typescript.transpileModule(code, { reportDiagnostics: true,
			compilerOptions: { target: ScriptTarget.ES2022, module: ModuleKind.ESNext,
				preserveValueImports: true, isolatedModules: true } });
		const bad = (done.diagnostics || []).filter((d) => d.category === 1 && d.code < 2000);
		if (bad.length > 0)
			throw new SyntaxError(typescript.flattenDiagnosticMessageText(bad[0].messageText, '\n'));
		return done.outputText.replace(/^export \{\};?$/m, '');
	};

	// What fails behind a run's back is told there, and ends nothing.
	const complain = (e) => {
		try {
			write(2, Buffer.from(`Uncaught ${util.inspect(e)}\n`));
		} catch {
			process.reallyExit(1);
		}
	};
	// What awaits at the top level is evaluated by the REPL of Node itself, which knows how to.
	let server = null;
	const repl = () => {
		if (server)
			return server;
		server = require('repl').start({ prompt: '', input: new PassThrough(),
			output: new PassThrough().resume(), terminal: false, useGlobal: true });
		// Errors of a run, and of what it left behind, go to the domain that it runs in.
		server._domain.removeAllListeners('error');
		server._domain.on('error', (e) => (fail ? fail(e) : complain(e)));
		return server;
	};
	const define = (name, value) => Object.defineProperty(globalThis, name,
		{ value, writable: true, configurable: true, enumerable: false });
	define('display', display);
	define('require', require('module').createRequire(`${process.cwd()}/context.js`));
	const empty = new PassThrough();
	empty.end();
	Object.defineProperty(process, 'stdin', { get: () => empty, configurable: true });

	let fail = null; // of the run that is under way
	const options = { displayErrors: false, breakOnSigint: true,
		importModuleDynamically: vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER ||
			((name) => import(name)) };
	const compile = (code, filename) => {
		if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) // an object sooner than a block
			try {
				return new vm.Script(`(${code.trim()})`, { ...options, filename });
			} catch {
				// a block, then
			}
		return new vm.Script(code, { ...options, filename });
	};
	const evaluate = (code) => new Promise((resolve, reject) => {
		const filename = `cell-${count}`;
		fail = reject;
		interrupt = () => reject(new Error('the run was interrupted'));
		if (!/\bawait\b/.test(code))
			return resolve({ value: compile(code, filename).runInThisContext(options) });
		if (isDeno)
			return new vm.Script(wrap(code), { ...options, filename }).runInThisContext(options)
				.then((value) => resolve({ value }), reject);
		return repl().eval(`${code}\n`, server.context, filename,
			(e, value) => (e ? reject(e) : resolve({ value })));
	});
	const report = (e) => {
		e = e && e.err ? e.err : e; // Recoverable: the code is not complete
		const isError = util.types.isNativeError(e) || e instanceof Error;
		const stack = isError ? String(e.stack || e) : '';
		const lines = stack.split('\n').filter((l) =>
			!/^\s+at .*(node:|ext:|context\.cjs|\[eval|new Promise \(<anon)/.test(l));
		send('x', { name: isError ? String(e.name) : 'Error',
			value: String(isError ? e.message : util.inspect(e)).slice(0, TEXT_MAX),
			traceback: lines.join('\n').slice(0, TEXT_MAX) });
	};
	// A run's own variables; what they were before.
	const setEnviron = (block) => {
		const before = new Map();
		for (const line of block.split('\n').slice(0, -1)) {
			const at = line.indexOf('=');
			const name = line.slice(0, at);
			if (!before.has(name))
				before.set(name, process.env[name]);
			process.env[name] = line.slice(at + 1).replace(/\\(.)/g,
				(_, c) => (c === 'n' ? '\n' : c));
		}
		return before;
	};
	const restoreEnviron = (before) => {
		for (const [name, value] of before)
			if (value === undefined)
				delete process.env[name];
			else
				process.env[name] = value;
	};
	const cell = async (code, mode, environ) => {
		const before = setEnviron(environ);
		count++;
		try {
			const text = rewrite(mode === 'ts' ? untype(code) : code, statement);
			const { value } = text.trim() ? await evaluate(text) : {};
			if (value !== undefined)
				show('r', describe(value));
		} catch (e) {
			report(e);
		}
		interrupt = fail = null;
		restoreEnviron(before);
		write(2, Buffer.from(`\x1e${token}e0000`));
		send('e', { count });
	};

	if (isDeno) // which reads a file alone
		fs.rmSync(require('path').dirname(__filename), { recursive: true });
	process.on('unhandledRejection', complain);
	process.on('uncaughtException', complain);
	process.on('SIGINT', () => interrupt && interrupt());

	let isBusy = false;
	const next = async () => {
		if (isBusy)
			return;
		isBusy = true;
		while (queue.length > 0) {
			const request = queue.shift();
			const end = request.indexOf(10);
			const head = request.toString('latin1', 0, end < 0 ? request.length : end).split(' ');
			if (head[0] === 'mark' && head.length === 2) {
				token = head[1];
				send('m', { count });
			} else if (head[0] === 'run' && (head.length === 4 || head.length === 5) &&
				end >= 0 && request.length - end - 1 === Number(head[2])) {
				const code = end + 1 + Number(head[4] || 0);
				token = head[1];
				await cell(request.toString('utf8', code), head[3],
					request.toString('utf8', end + 1, code));
			}
		}
		isBusy = false;
	};
	let rest = [];
	const input = new net.Socket({ fd: 0, readable: true, writable: false });
	input.on('data', (data) => {
		for (let at; (at = data.indexOf(0)) >= 0; data = data.subarray(at + 1)) {
			queue.push(Buffer.concat([...rest, data.subarray(0, at)]));
			rest = [];
		}
		if (data.length > 0)
			rest.push(data);
		next();
	});
	input.on('end', () => process.exit(0));
})();
