# The R of a context: runs one request after the other in a global environment that is kept. Requests
# and frames are as in context.py. Requests come by descriptor 9; standard input is empty.
local({
	options(warn = 1, device = function(...) png(file.path(tempdir(), "plot%03d.png"), 640, 480,
		type = "cairo"))
	suppressWarnings(Sys.setlocale("LC_ALL", "C.UTF-8"))
	con <- pipe("exec cat <&9", "rb") # the descriptor is not ours to open by its name
	BODY <- 2000L; TEXT <- 1048576L; VALUE <- 7340032L
	token <- ""; count <- 0L; calls <- NULL

	# ---- frames ----
	send <- function(kind, body = "", to = stdout()) {
		n <- nchar(body)
		at <- 1L
		while (n - at + 1L > BODY) {
			part <- substr(body, at, at + BODY - 1L)
			cat(sprintf("\x1e%sp%04x%s", token, nchar(part), part), file = to, sep = "")
			at <- at + BODY
		}
		part <- substr(body, at, n)
		cat(sprintf("\x1e%s%s%04x%s", token, kind, nchar(part), part), file = to, sep = "")
		flush(to)
	}
	# A string as JSON, all of it ASCII.
	quote <- function(s) {
		s <- iconv(enc2utf8(paste(s, collapse = "\n")), "UTF-8", "UTF-8", sub = "?")
		if (is.na(s)) s <- "NA"
		if (nchar(s, "bytes") > TEXT) s <- paste0(substr(s, 1L, TEXT %/% 4L), "...")
		s <- gsub("\\", "\\\\", s, fixed = TRUE)
		s <- gsub("\"", "\\\"", s, fixed = TRUE)
		if (grepl("[^ -~]", s, perl = TRUE)) {
			u <- utf8ToInt(s)
			t <- vapply(u, intToUtf8, "")
			b <- u < 32L | u == 127L | (u > 127L & u < 65536L)
			t[b] <- sprintf("\\u%04x", u[b])
			h <- u >= 65536L
			t[h] <- sprintf("\\u%04x\\u%04x", 55296L + (u[h] - 65536L) %/% 1024L,
				56320L + (u[h] - 65536L) %% 1024L)
			s <- paste(t, collapse = "")
		}
		paste0("\"", s, "\"")
	}
	object <- function(...) {
		m <- Filter(Negate(is.null), list(...))
		paste0("{", paste0("\"", names(m), "\":", m, collapse = ","), "}")
	}

	# ---- values ----
	html <- function(d) {
		e <- function(x) gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", as.character(x))))
		row <- function(tag, x) paste0("<tr>", paste0("<", tag, ">", e(x), "</", tag, ">",
			collapse = ""), "</tr>")
		d <- head(d, 100L)
		paste0("<table>", row("th", names(d)), paste(apply(format(d), 1L,
			function(r) row("td", r)), collapse = ""), "</table>")
	}
	show <- function(kind, value) {
		text <- tryCatch(paste(capture.output(print(value)), collapse = "\n"),
			error = function(e) paste("<cannot be shown:", conditionMessage(e), ">"))
		table <- if (is.data.frame(value) && nrow(value) > 0L)
			tryCatch(quote(html(value)), error = function(e) NULL)
		send(kind, object(text = quote(text), html = table))
	}
	base64 <- function(path) {
		set <- strsplit(paste0(paste(c(LETTERS, letters, 0:9), collapse = ""), "+/"), "")[[1L]]
		b <- as.integer(readBin(path, "raw", file.size(path)))
		pad <- (3L - length(b) %% 3L) %% 3L
		m <- matrix(c(b, integer(pad)), nrow = 3L)
		i <- rbind(m[1L, ] %/% 4L, m[1L, ] %% 4L * 16L + m[2L, ] %/% 16L,
			m[2L, ] %% 16L * 4L + m[3L, ] %/% 64L, m[3L, ] %% 64L) + 1L
		s <- set[i]
		if (pad) s[length(s) - seq_len(pad) + 1L] <- "="
		paste(s, collapse = "")
	}
	plots <- function() {
		while (dev.cur() > 1L) dev.off()
		for (p in sort(list.files(tempdir(), "^plot[0-9]+[.]png$", full.names = TRUE))) {
			data <- base64(p)
			unlink(p)
			if (nchar(data) < VALUE)
				send("d", object(png = paste0("\"", data, "\""), text = quote("<plot>")))
		}
	}

	# ---- code ----
	fail <- function(name, e, trace = "") {
		message <- if (inherits(e, "condition")) conditionMessage(e) else as.character(e)
		send("x", object(name = quote(name), value = quote(message),
			traceback = quote(paste(c(paste0(name, ": ", message), trace), collapse = "\n"))))
	}
	trace <- function() {
		t <- vapply(calls, function(x) paste(deparse(x, nlines = 1L)[1L]), "")
		t <- t[!grepl("^(\\.handleSimpleError|h\\(simpleError|withVisible\\(eval|eval\\(|evaluate\\(|parse\\(text|withCallingHandlers|tryCatch|local\\()", t)]
		paste0("  at ", head(rev(t), 50L))
	}
	evaluate <- function(code) {
		all <- parse(text = code, keep.source = FALSE)
		for (i in seq_along(all)) {
			v <- withVisible(eval(all[[i]], globalenv()))
			if (v$visible) show(if (i == length(all)) "r" else "d", v$value)
		}
	}
	run <- function(code) tryCatch(withCallingHandlers(evaluate(code), error = function(e)
		calls <<- tail(sys.calls(), -20L)),
		interrupt = function(e) fail("Interrupt", "the run was interrupted"),
		error = function(e) fail(class(e)[1L], e, trace()))
	setenv <- function(block) {
		before <- list()
		for (line in strsplit(block, "\n", fixed = TRUE)[[1L]]) {
			at <- regexpr("=", line, fixed = TRUE)
			name <- substr(line, 1L, at - 1L)
			if (!name %in% names(before)) before[[name]] <- Sys.getenv(name, NA)
			value <- strsplit(paste0(substr(line, at + 1L, nchar(line)), "."), "\\\\", fixed = TRUE)[[1L]]
			value <- paste(gsub("\\n", "\n", value, fixed = TRUE), collapse = "\\")
			value <- substr(value, 1L, nchar(value) - 1L)
			do.call(Sys.setenv, setNames(list(value), name))
		}
		before
	}
	cell <- function(code, environ) {
		before <- setenv(environ)
		count <<- count + 1L
		run(code)
		tryCatch(plots(), error = function(e) fail("plot", e), interrupt = function(e) NULL)
		while (sink.number() > 0L) sink()
		for (name in names(before))
			if (is.na(before[[name]])) Sys.unsetenv(name)
			else do.call(Sys.setenv, setNames(list(before[[name]]), name))
		send("e", to = stderr())
		send("e", sprintf("{\"count\":%d}", count))
	}
	take <- function(n) { # a pipe gives what it has
		all <- raw(0)
		while (length(all) < n && length(b <- readBin(con, "raw", n - length(all)))) all <- c(all, b)
		all
	}
	text <- function(raw) { s <- rawToChar(raw); Encoding(s) <- "UTF-8"; s }
	repeat tryCatch({
		head <- raw(0)
		while (length(b <- readBin(con, "raw", 1L)) && b != 0L && b != 10L) head <- c(head, b)
		if (!length(b)) quit("no")
		word <- c(strsplit(rawToChar(head), " ", fixed = TRUE)[[1L]], "", "")
		if (word[1L] != "") token <- word[2L]
		if (word[1L] == "mark") {
			send("m", sprintf("{\"count\":%d}", count))
		} else if (word[1L] == "run") {
			body <- take(as.integer(word[3L]))
			take(1L)
			n <- if (length(word) > 6L) as.integer(word[5L]) else 0L
			cell(text(body[seq_len(length(body) - n) + n]), text(body[seq_len(n)]))
		}
	}, interrupt = function(e) NULL)
})
