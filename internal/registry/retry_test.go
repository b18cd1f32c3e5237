package registry_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// TestTheFirstIndexIsTriedAgainSoon lets all updates of an index fail: until the first one is ready, an update is
// repeated after a time that doubles up to the interval.
func TestTheFirstIndexIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		s := registry.NewSite(registry.SiteOptions{
			Indexer: noIndexer{}, Interval: 10 * time.Second, Repositories: func(context.Context) ([]string, error) {
				at = append(at, time.Since(begin))
				return nil, errors.New("connection refused")
			}})
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil || s.Healthy() == nil {
			t.Errorf("%v, %v", err, s.Healthy())
		}
		if want := []time.Duration{
			0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 10 * time.Second,
		}; !slices.Equal(at[:min(len(at), len(want))], want) {
			t.Errorf("updates at %v, want %v first", at, want)
		}
	})
}

// TestAThrottledListOfRepositories serves a front of a registry that limits its requests at first: the error names the
// status, and not another way to name the repositories.
func TestAThrottledListOfRepositories(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/_catalog") {
				w.WriteHeader(status)
			}
		})).URL, "http://")
		s := start(t, func(o *registry.Options) { o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true} })
		wait.Until(t, time.Minute, "the list fails", func() (string, bool) {
			err := s.Site().Healthy()
			return "", err != nil && strings.Contains(err.Error(), http.StatusText(status)) &&
				!strings.Contains(err.Error(), "--repository")
		})
	}
}
