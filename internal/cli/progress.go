package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress tells what a command is doing. On a terminal one line moves; elsewhere
// each new text is a line of its own.
type progress struct {
	w    io.Writer
	tty  bool
	mu   sync.Mutex
	text string
	from time.Time
	stop chan struct{}
	done sync.WaitGroup
}

// newProgress starts telling on w.
func newProgress(w io.Writer) *progress {
	return &progress{w: w, tty: isTerminal(w)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// say sets the text of what is being done now.
func (p *progress) say(text string, args ...any) {
	text = safe(fmt.Sprintf(text, args...))
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == p.text {
		return
	}
	p.text = text
	if !p.tty {
		fmt.Fprintln(p.w, text)
		return
	}
	if p.stop == nil {
		p.from, p.stop = time.Now(), make(chan struct{})
		p.done.Add(1)
		go p.spin(p.stop)
	}
}

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (p *progress) spin(stop chan struct{}) {
	defer p.done.Done()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		p.mu.Lock()
		fmt.Fprintf(p.w, "\r\x1b[K%s %s (%s)", frames[i%len(frames)], p.text, age(p.from, time.Now()))
		p.mu.Unlock()
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// end removes the moving line. More can be said afterwards.
func (p *progress) end() {
	p.mu.Lock()
	stop := p.stop
	p.stop, p.text = nil, ""
	p.mu.Unlock()
	if stop == nil {
		return
	}
	close(stop)
	p.done.Wait()
	fmt.Fprint(p.w, "\r\x1b[K")
}
