// The Java of a context: runs one request after the other in a JShell that is kept, in this same
// process. Requests and frames are as in context.py.
import java.io.*;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.*;
import jdk.jshell.*;

class Context {
	static final int BODY = 4096 - 26, TEXT = 1 << 20;
	static final FileOutputStream out = new FileOutputStream(FileDescriptor.out);
	static final FileOutputStream err = new FileOutputStream(FileDescriptor.err);
	static String token = "";
	static int count = 0;
	static volatile boolean isRunning = false, isInterrupted = false;
	static JShell shell;

	// ---- frames ----

	static void write(FileOutputStream to, char kind, byte[] body, int at, int n) throws IOException {
		var frame = new ByteArrayOutputStream();
		frame.write(String.format("\u001e%s%c%04x", token, kind, n).getBytes(StandardCharsets.US_ASCII));
		frame.write(body, at, n);
		to.write(frame.toByteArray()); // at once
	}

	static void send(char kind, String text) throws IOException {
		byte[] body = text.getBytes(StandardCharsets.UTF_8);
		int at = 0;
		System.out.flush();
		for (; body.length - at > BODY; at += BODY)
			write(out, 'p', body, at, BODY);
		write(out, kind, body, at, body.length - at);
	}

	static String quote(String s) {
		var b = new StringBuilder("\"");
		if (s.length() > TEXT)
			s = s.substring(0, TEXT) + "...";
		for (char c : s.toCharArray())
			if (c == '"' || c == '\\')
				b.append('\\').append(c);
			else if (c < 32 || Character.isSurrogate(c))
				b.append(String.format("\\u%04x", (int) c));
			else
				b.append(c);
		return b.append('"').toString();
	}

	// ---- code ----

	static void fail(String name, String value, String trace) throws IOException {
		send('x', "{\"name\":" + quote(name) + ",\"value\":" + quote(value) +
			",\"traceback\":" + quote(trace) + "}");
	}

	static void failWith(JShellException e) throws IOException {
		var name = e instanceof EvalException x ? x.getExceptionClassName() : "UnresolvedReference";
		var trace = new StringBuilder(name + ": " + e.getMessage());
		for (var at : e.getStackTrace())
			if (!at.getClassName().startsWith("jdk.") && !at.getClassName().startsWith("java.base/"))
				trace.append("\n  at ").append(at);
		fail(name, String.valueOf(e.getMessage()), trace.toString());
	}

	static void refuse(Snippet s) throws IOException {
		var text = new StringBuilder();
		shell.diagnostics(s).filter(Diag::isError).forEach(d -> text.append(text.length() > 0 ? "\n" : "")
			.append(d.getMessage(Locale.ROOT)));
		fail("CompilationError", text.toString(), text + "\n  in: " + s.source().strip());
	}

	static boolean isValue(Snippet s) {
		return s.kind() == Snippet.Kind.EXPRESSION || s.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
	}

	// False: what follows is not run.
	static boolean evaluate(String source, boolean isLast) throws IOException {
		for (var e : shell.eval(source)) {
			if (e.causeSnippet() != null)
				continue;
			if (e.status() == Snippet.Status.REJECTED) {
				refuse(e.snippet());
				return false;
			}
			if (isInterrupted) {
				fail("Interrupted", "the run was interrupted", "Interrupted: the run was interrupted");
				return false;
			}
			if (e.exception() != null) {
				failWith(e.exception());
				return false;
			}
			if (isLast && e.value() != null && isValue(e.snippet()))
				send('r', "{\"text\":" + quote(e.value()) + "}");
		}
		return true;
	}

	static void run(String code) throws IOException {
		var analysis = shell.sourceCodeAnalysis();
		var rest = code;
		while (!rest.isBlank()) {
			var found = analysis.analyzeCompletion(rest);
			if (found.completeness() == SourceCodeAnalysis.Completeness.EMPTY)
				return;
			if (!found.completeness().isComplete()) {
				fail("CompilationError", "the code is not complete", "CompilationError: the code is not complete\n  in: " + rest.strip());
				return;
			}
			rest = found.remaining();
			if (!evaluate(found.source(), rest.isBlank()))
				return;
		}
	}

	// What System.getenv() shows is a view of a map that can be written.
	@SuppressWarnings("unchecked")
	static Map<String, String> environ() throws ReflectiveOperationException {
		Field f = System.getenv().getClass().getDeclaredField("m");
		f.setAccessible(true);
		return (Map<String, String>) f.get(System.getenv());
	}

	static String unescape(String s) {
		var b = new StringBuilder();
		for (int i = 0; i < s.length(); i++)
			if (s.charAt(i) == '\\' && i + 1 < s.length())
				b.append(s.charAt(++i) == 'n' ? '\n' : s.charAt(i));
			else
				b.append(s.charAt(i));
		return b.toString();
	}

	// As a variable and as a property; null: neither. A property that Java itself has stays.
	static void setVariable(String name, String value) throws ReflectiveOperationException {
		boolean isFree = Objects.equals(System.getProperty(name), System.getenv(name));
		if (value == null)
			environ().remove(name);
		else
			environ().put(name, value);
		if (isFree && value == null)
			System.clearProperty(name);
		else if (isFree && !name.isEmpty())
			System.setProperty(name, value);
	}

	static Map<String, String> setEnviron(String block) throws ReflectiveOperationException {
		var before = new HashMap<String, String>();
		for (var line : block.split("\n")) {
			int at = line.indexOf('=');
			if (at < 0)
				continue;
			var name = line.substring(0, at);
			before.putIfAbsent(name, System.getenv(name));
			setVariable(name, unescape(line.substring(at + 1)));
		}
		return before;
	}

	static void cell(String code, String block) throws Exception {
		var before = setEnviron(block);
		count++;
		isInterrupted = false;
		isRunning = true;
		try {
			run(code);
		} catch (IllegalStateException e) {
			System.exit(1); // the shell is gone: whoever waits learns of it by our end
		}
		isRunning = false;
		for (var e : before.entrySet())
			setVariable(e.getKey(), e.getValue());
		System.err.flush();
		write(err, 'e', new byte[0], 0, 0);
		send('e', "{\"count\":" + count + "}");
	}

	static void handle(byte[] all) throws Exception {
		int end = 0;
		while (end < all.length && all[end] != '\n')
			end++;
		var head = new String(all, 0, end, StandardCharsets.US_ASCII).split(" ");
		if (head[0].equals("mark") && head.length == 2) {
			token = head[1];
			send('m', "{\"count\":" + count + "}");
		} else if (head[0].equals("run") && head.length >= 4 &&
			all.length - end - 1 == Integer.parseInt(head[2])) {
			int n = head.length > 4 ? Integer.parseInt(head[4]) : 0;
			token = head[1];
			cell(new String(all, end + 1 + n, all.length - end - 1 - n, StandardCharsets.UTF_8),
				new String(all, end + 1, n, StandardCharsets.UTF_8));
		}
	}

	public static void main(String[] args) throws Exception {
		for (var path : args) // where we were read from
			new File(path).delete();
		for (var e : System.getenv().entrySet())
			if (System.getProperty(e.getKey()) == null)
				System.setProperty(e.getKey(), e.getValue());
		var requests = new BufferedInputStream(new FileInputStream(FileDescriptor.in));
		System.setIn(InputStream.nullInputStream());
		System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
		System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
		sun.misc.Signal.handle(new sun.misc.Signal("INT"), s -> {
			if (isRunning) {
				isInterrupted = true;
				shell.stop();
			}
		});
		shell = JShell.builder().executionEngine("local").build();
		for (var name : List.of("io", "math", "net", "nio.file", "util", "util.concurrent",
			"util.function", "util.regex", "util.stream"))
			shell.eval("import java." + name + ".*;");
		var request = new ByteArrayOutputStream();
		for (int b; (b = requests.read()) >= 0;)
			if (b != 0) {
				request.write(b);
			} else {
				handle(request.toByteArray());
				request.reset();
			}
		System.exit(0);
	}
}
