package limit

import (
	"context"
	"fmt"
	"sync"
)

// share counts what clients hold of a limit. It is not safe for concurrent use.
type share struct {
	most             int
	total, anonymous int
	held             map[string]int
}

// refusal returns the reason for which a client may not hold one more; nil if it may.
func (s *share) refusal(c Client, things, advice string) *Refusal {
	switch {
	case s.held[c.Key] >= OfClient(s.most):
		return &Refusal{fmt.Sprintf("the client has %d %s, which is the limit", s.held[c.Key], things), advice, true}
	case c.IsAnonymous && s.anonymous >= OfAnonymous(s.most):
		reason := fmt.Sprintf("clients that are not logged in have %d %s, which is the limit", s.anonymous, things)
		return &Refusal{reason, "log in, or try again later", false}
	case s.total >= s.most:
		reason := fmt.Sprintf("the server has %d %s, which is the limit", s.total, things)
		return &Refusal{reason, "try again later", false}
	}
	return nil
}

// add counts n more of a client.
func (s *share) add(c Client, n int) {
	if s.held == nil {
		s.held = map[string]int{}
	}
	s.total += n
	if c.IsAnonymous {
		s.anonymous += n
	}
	if s.held[c.Key] += n; s.held[c.Key] == 0 {
		delete(s.held, c.Key)
	}
}

// Gate limits the number of requests of a kind that are in progress. It is safe for concurrent use.
type Gate struct {
	// things names the requests in messages.
	things string

	mu    sync.Mutex
	share share
	freed chan struct{} // closed and replaced when a request leaves
}

// NewGate returns a gate for a number of requests. Things names them in messages.
func NewGate(most int, things string) *Gate {
	return &Gate{things: things, share: share{most: most}, freed: make(chan struct{})}
}

// Enter admits a request of a client until leave is called, or returns the reason for which it does not.
func (g *Gate) Enter(c Client) (leave func(), refused *Refusal) {
	leave, _, refused = g.try(c)
	return leave, refused
}

// Wait admits a request like Enter. It waits for others to leave until the context ends.
func (g *Gate) Wait(ctx context.Context, c Client) (leave func(), refused *Refusal) {
	for {
		leave, freed, refused := g.try(c)
		if refused == nil {
			return leave, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, refused
		}
	}
}

func (g *Gate) try(c Client) (leave func(), freed <-chan struct{}, refused *Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if refused := g.share.refusal(c, g.things, "end some of them, or try again later"); refused != nil {
		return nil, g.freed, refused
	}
	g.share.add(c, 1)
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.share.add(c, -1)
		close(g.freed)
		g.freed = make(chan struct{})
	}), nil, nil
}
