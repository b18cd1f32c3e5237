package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress reports the progress of a command: on a terminal as one line that is updated, elsewhere as one line for each
// text.
type Progress struct {
	w   io.Writer
	Tty bool
	// quiet makes Set report nothing.
	quiet bool
	mu    sync.Mutex
	text  string
	from  time.Time
	stop  chan struct{}
}

// NewProgress returns a Progress that reports to w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w, Tty: IsTerminal(w), quiet: IsQuiet(w)}
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// fileOf returns the file that a writer writes to.
func fileOf(w io.Writer) (*os.File, bool) {
	switch wrapped := w.(type) {
	case *CheckedWriter:
		return fileOf(wrapped.Writer)
	case *page:
		return fileOf(wrapped.shownBy)
	case *MessageWriter:
		return fileOf(wrapped.Writer)
	}
	f, ok := w.(*os.File)
	return f, ok
}

// Set sets the current text.
func (p *Progress) Set(text string, args ...any) {
	text = Safe(fmt.Sprintf(text, args...))
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == p.text || p.quiet {
		return
	}
	p.text = text
	if !p.Tty {
		fmt.Fprintln(p.w, text)
		return
	}
	if p.stop == nil {
		p.from, p.stop = time.Now(), make(chan struct{})
		go p.spin(p.stop)
	}
}

// IsSet reports whether there is a current text.
func (p *Progress) IsSet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text != ""
}

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (p *Progress) spin(stop chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; p.draw(stop, frames[i%len(frames)]); i++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// clearLine clears the line of the cursor.
const clearLine = "\r\x1b[K"

// draw updates the progress line, unless the progress has ended. It truncates a line that is longer than the
// terminal, because only one row can be cleared.
func (p *Progress) draw(stop chan struct{}, frame string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != stop {
		return false
	}
	took := " (" + Age(p.from, time.Now()) + ")"
	room := columnsOf(p.w) - len(took) - 3
	fmt.Fprint(p.w, clearLine+frame+" "+Clip(strings.ReplaceAll(p.text, "\n", " "), room)+took)
	return true
}

// columnsOf returns the number of columns of a terminal.
func columnsOf(w io.Writer) int {
	const usual = 80
	if columns := ColumnsOf(w); columns != Unlimited {
		return columns
	}
	return usual
}

// Write writes complete lines above the progress line.
func (p *Progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		fmt.Fprint(p.w, clearLine)
	}
	return p.w.Write(b)
}

// End removes the progress line. More output can follow.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		close(p.stop)
		fmt.Fprint(p.w, clearLine)
	}
	p.stop, p.text = nil, ""
}
