package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
	"github.com/xpkg-dev/xpkg/internal/pause"
)

const (
	// throttledTries is the number of attempts for a call that the server throttles, and lostTries the number of attempts
	// for a call without a response.
	throttledTries, lostTries = 6, 3
	// lostPause is the pause after the first lost response of a call. Further pauses are longer.
	lostPause = 200 * time.Millisecond
)

// request creates the request of one attempt, and returns the number of bytes that it sends.
type request func() (req *rest.Request, size int, err error)

// call makes a call when the limiter admits it, and repeats it if the server throttles or the response is lost. Doubt
// reports whether an earlier attempt may have been carried out.
//
// A write that has started finishes after ctx is canceled; a read does not.
func (c *Cluster) call(ctx context.Context, class limiter.Class, r request) (raw []byte, doubt bool, err error) {
	var throttled, lost int
	for {
		var v verdict
		raw, v, err = c.attempt(ctx, class, r)
		switch {
		case v.throttled:
			throttled++
		case v.lost:
			lost++
		default:
			return raw, doubt, err
		}
		if v.lost {
			err = fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		switch {
		case v.after > limiter.MaxPause:
			return nil, doubt, fmt.Errorf("the API server rejects requests for %s: %w", v.after, err)
		case throttled >= throttledTries, lost >= lostTries:
			return nil, doubt, fmt.Errorf("after %d attempts: %w", throttled+lost, err)
		}
		doubt = doubt || v.lost
		if v.throttled || pause.For(ctx, lostPause<<(2*(lost-1))) == nil {
			continue
		}
		return nil, doubt, err
	}
}

// attempt makes one attempt of a call.
func (c *Cluster) attempt(ctx context.Context, class limiter.Class, r request) ([]byte, verdict, error) {
	t, err := c.limiter.Acquire(ctx, class)
	if err != nil {
		return nil, verdict{}, err
	}
	// The request is created now and not earlier, to limit the number of requests in memory.
	req, size, err := r()
	if err != nil {
		c.limiter.Cancel(class)
		return nil, verdict{}, err
	}
	going := ctx
	if class != limiter.Read {
		going = context.WithoutCancel(ctx)
	}
	listening, h := hear(going)
	began := time.Now()
	raw, err := send(listening, req)
	v := judge(err, *h, time.Now())
	c.limiter.Release(t, limiter.Result{
		Class: class, Size: size, Took: time.Since(began), Failed: err != nil, Throttled: v.throttled, After: v.after,
	})
	if going.Err() != nil {
		return nil, verdict{}, going.Err()
	}
	return raw, v, err
}

// send makes one call, without the retries of the client library. The error of a refused call contains the response
// of the server.
func send(ctx context.Context, req *rest.Request) ([]byte, error) {
	result := req.MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// get reads a path with the given media type.
func (c *Cluster) get(ctx context.Context, accept string, params map[string]string, path ...string) ([]byte, error) {
	raw, _, err := c.call(ctx, limiter.Read, func() (*rest.Request, int, error) {
		req := c.rest.Get().AbsPath(path...).SetHeader("Accept", accept)
		for k, v := range params {
			req = req.Param(k, v)
		}
		return req, 0, nil
	})
	return raw, err
}
