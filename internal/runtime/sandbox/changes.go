package sandbox

import "sync"

// changes is a queue of names without duplicates: a name that is reported several times
// before it is received is delivered once.
type changes struct {
	out  chan string
	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	pending []string
	waiting map[string]bool
}

func newChanges() *changes {
	c := &changes{
		out: make(chan string), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		waiting: map[string]bool{},
	}
	go c.run()
	return c
}

func (c *changes) report(name string) {
	c.mu.Lock()
	if !c.waiting[name] {
		c.waiting[name] = true
		c.pending = append(c.pending, name)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *changes) run() {
	defer close(c.done)
	defer close(c.out)
	for {
		name, ok := c.next()
		if !ok {
			select {
			case <-c.wake:
				continue
			case <-c.stop:
				return
			}
		}
		select {
		case c.out <- name:
		case <-c.stop:
			return
		}
	}
}

// next removes the oldest name from the queue. A later change of the same name is queued again.
func (c *changes) next() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return "", false
	}
	name := c.pending[0]
	c.pending = c.pending[1:]
	delete(c.waiting, name)
	return name, true
}

func (c *changes) close() {
	close(c.stop)
	<-c.done
}
