package fault

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
)

// holdBack delays the events of a watch for subjects whose reads are stale. Events of one
// subject stay in order. Events of other subjects are not delayed.
func (n *Network) holdBack(res *http.Response) {
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || mediaType != "application/json" {
		return
	}
	reader, writer := io.Pipe()
	w := &watcher{network: n, from: res.Body, to: writer, events: make(chan []byte), closed: make(chan struct{})}
	go w.read()
	go w.write()
	res.Body = &watchBody{PipeReader: reader, w: w}
}

// watcher forwards the events of one watch, each of which is one line of JSON.
type watcher struct {
	network *Network
	from    io.ReadCloser
	to      *io.PipeWriter
	events  chan []byte
	// closed is closed when the reader has closed the body.
	closed chan struct{}
	held   [][]byte
}

type watchBody struct {
	*io.PipeReader
	w    *watcher
	once sync.Once
}

// Close implements [io.Closer].
func (b *watchBody) Close() error {
	b.once.Do(func() { close(b.w.closed) })
	return errors.Join(b.PipeReader.Close(), b.w.from.Close())
}

func (w *watcher) read() {
	defer close(w.events)
	lines := bufio.NewReader(w.from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			select {
			case w.events <- line:
			case <-w.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *watcher) write() {
	defer w.to.Close()
	for {
		fresh, err := w.release()
		if err != nil {
			return
		}
		select {
		case event, ok := <-w.events:
			if !ok {
				w.flush()
				return
			}
			w.held = append(w.held, event)
		case <-fresh:
		case <-w.closed:
			return
		}
	}
}

// release writes the events that are not delayed, and returns the channel that ends the delay
// of the first of the others.
func (w *watcher) release() (wait <-chan struct{}, err error) {
	var held [][]byte
	waiting := map[string]bool{}
	for _, event := range w.held {
		name := w.network.attribution.In(event)
		fresh, old := w.network.old(name)
		// A bookmark has no subject. It must not overtake a delayed event.
		if waiting[name] || name == "" && len(held) > 0 || old {
			waiting[name] = true
			if held = append(held, event); wait == nil {
				wait = fresh
			}
			continue
		}
		if _, err := w.to.Write(event); err != nil {
			return nil, err
		}
	}
	w.held = held
	return wait, nil
}

// flush writes the delayed events when the watch ends.
func (w *watcher) flush() {
	for _, event := range w.held {
		if _, err := w.to.Write(event); err != nil {
			return
		}
	}
}
