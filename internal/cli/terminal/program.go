package terminal

import (
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// defaultProgram is the name of the program in messages.
const defaultProgram = "xpkg"

// command matches the name of the program where a command begins in a message: after a quote, or as the first word of
// an indented line.
var command = lazyregexp.New("(?m)([`\"]|^ {2,})" + defaultProgram + ` ([a-z-])`)

// nameProgram returns a message with its commands under the name by which the user runs the program, such as
// "kubectl crossplane".
func nameProgram(program, message string) string {
	if program == "" || program == defaultProgram {
		return message
	}
	return command().ReplaceAllString(message, "${1}"+program+" $2")
}

// MessageWriter is a stream of messages. It replaces the program name in the commands of messages with the
// name by which the user runs the program.
type MessageWriter struct {
	io.Writer
	Program string
	// Quiet drops notes, and makes [Progress] report nothing.
	Quiet bool
	// Color highlights the messages.
	Color bool
}

// IsQuiet reports whether a stream of messages drops everything but results and errors.
func IsQuiet(w io.Writer) bool {
	messages, ok := w.(*MessageWriter)
	return ok && messages.Quiet
}

// notePrefix begins a message that is neither a result nor an error.
const notePrefix = "note: "

// Write implements io.Writer.
func (w *MessageWriter) Write(b []byte) (int, error) {
	message := nameProgram(w.Program, string(b))
	if w.Quiet && strings.HasPrefix(message, notePrefix) {
		return len(b), nil
	}
	// Neither the progress line nor a record of a log is wrapped.
	if !strings.HasPrefix(message, clearLine) && !strings.HasPrefix(message, "time=") {
		message = Wrap(message, ColumnsOf(w.Writer))
	}
	if w.Color {
		message = highlight(message)
	}
	if _, err := io.WriteString(w.Writer, message); err != nil {
		return 0, err
	}
	return len(b), nil
}
