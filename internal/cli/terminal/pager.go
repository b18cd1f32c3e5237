package terminal

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// page is text that is complete before it is written. A command shortens what a terminal shows without a pager.
type page struct {
	strings.Builder
	// shownBy is the writer that shows the text, or nil.
	shownBy io.Writer
	columns int
}

// Show writes text for people, without control characters that affect a terminal. The lines of a text that is not wide
// fit on the terminal.
func Show(w io.Writer, wide bool, write func(io.Writer)) error {
	stdout, ok := w.(*CheckedWriter)
	text := page{columns: Unlimited}
	if ok && stdout.Pager == "" {
		text.shownBy = stdout
	}
	if !wide {
		text.columns = ColumnsOf(w)
	}
	write(&text)
	message := SafeText(text.String())
	if !ok {
		_, err := io.WriteString(w, message)
		return err
	}
	return stdout.show(Wrap(nameProgram(stdout.Program, message), text.columns))
}

// show writes text for people: with colors, and in the pager if it has more lines than the terminal.
func (w *CheckedWriter) show(text string) error {
	if w.Color {
		text = highlight(text)
	}
	if w.Pager != "" && strings.Count(text, "\n") >= rowsOf(w) && w.pageThrough(text) {
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// Unlimited is the size of a file that is no terminal, and has room for every text.
const Unlimited = 1 << 30

// rowsOf returns the number of rows of a terminal.
func rowsOf(w io.Writer) int {
	_, rows := sizeOf(w)
	return rows
}

// ColumnsOf returns the number of columns of a terminal, which is very large for other files.
func ColumnsOf(w io.Writer) int {
	if text, ok := w.(*page); ok {
		return text.columns
	}
	columns, _ := sizeOf(w)
	return columns
}

// sizeOf returns the size of a terminal, which can be known in one direction only.
func sizeOf(w io.Writer) (columns, rows int) {
	f, ok := fileOf(w)
	if !ok || !IsTerminal(w) {
		return Unlimited, Unlimited
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return Unlimited, Unlimited
	}
	return cmp.Or(columns, Unlimited), cmp.Or(rows, Unlimited)
}

// pageThrough shows text in the pager. It returns false if the pager cannot be started.
func (w *CheckedWriter) pageThrough(text string) bool {
	f, _ := fileOf(w)
	words := strings.Fields(w.Pager)
	if len(words) == 0 {
		return false
	}
	cmd := exec.Command(words[0], words[1:]...)
	// less shows colors, ends at once if the text fits, and prints UTF-8 in every locale, as other output of the command
	// is. An existing variable takes precedence.
	cmd.Env = append([]string{"LESS=FRX", "LESSCHARSET=utf-8"}, os.Environ()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), f, os.Stderr
	if err := cmd.Start(); err != nil {
		return false
	}
	// A pager that the user ends early does not read the whole text, which is no failure of the command.
	_ = cmd.Wait()
	return true
}
