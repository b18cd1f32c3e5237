package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// fleet are servers in a cluster in front of one registry in memory. A race decides which of the requests of its pushes
// the registry or the API server serves next.
type fleet struct {
	backend http.Handler
	servers []*server
	config  *cluster.Config
	// ordered is the number of requests whose order a race has chosen.
	ordered int

	mu sync.Mutex
	// written are the contents that the registry had under the path of each tag.
	written map[string]map[string]bool
	// repositories are the repositories to which content was sent.
	repositories map[string]bool
}

// waiting is a request of a server that the registry has not served.
type waiting struct {
	from    int
	outcome chan outcome
}

// outcome is the treatment of a request.
type outcome int

const (
	served outcome = iota
	lostBefore
	lostAfter // The registry serves the request, and the server does not get the response.
)

var errLost = errors.New("the server has failed")

// arrivalsKey is the key of the context of a race, whose value is the channel of the requests that wait. Without it, a
// request is served at once. A request that a server abandons can arrive after the end of its race.
type arrivalsKey struct{}

// toFleet sends the requests of a server to the registry of a fleet, or to the API server.
type toFleet struct {
	f    *fleet
	from int
	// next sends requests to the API server; nil for the registry.
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (x toFleet) RoundTrip(r *http.Request) (*http.Response, error) {
	treatment := served
	if arrivals, ok := r.Context().Value(arrivalsKey{}).(chan *waiting); ok && matters(r) {
		if r.Context().Err() != nil {
			return nil, errLost
		}
		w := &waiting{x.from, make(chan outcome)}
		select {
		case arrivals <- w:
		case <-r.Context().Done():
			return nil, errLost
		}
		treatment = <-w.outcome
	}
	if treatment == lostBefore {
		return nil, errLost
	}
	var resp *http.Response
	var err error
	if x.next == nil {
		resp = x.f.serve(r)
	} else if resp, err = x.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err != nil {
		return nil, err
	}
	if treatment == lostAfter {
		_ = resp.Body.Close()
		return nil, errLost
	}
	return resp, nil
}

// matters reports whether the order of a request among those of other servers matters: it is a list of repositories or
// tags, reads or writes a tag or a claim, or asks for or deletes a manifest.
func matters(r *http.Request) bool {
	repository, reference, isManifest := strings.Cut(r.URL.Path, "/manifests/")
	if repository == "/v2/index" {
		return false
	}
	return r.URL.Path == listPath || strings.HasSuffix(r.URL.Path, "/tags/list") ||
		strings.Contains(r.URL.Path, "/leases") ||
		isManifest && (!strings.Contains(reference, ":") || r.Method == http.MethodHead || r.Method == http.MethodDelete)
}

// listPath is the path of the list of repositories.
const listPath = "/v2/_catalog"

// serve serves a request, and records the content of tags.
func (f *fleet) serve(r *http.Request) *http.Response {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	defer f.mu.Unlock()
	w := httptest.NewRecorder()
	if r.URL.Path == listPath {
		_ = json.NewEncoder(w).Encode(map[string][]string{"repositories": slices.Sorted(maps.Keys(f.repositories))})
	} else {
		f.backend.ServeHTTP(w, r)
	}
	for _, endpoint := range []string{"/blobs/uploads/", "/manifests/"} {
		if repository, _, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), endpoint); ok &&
			r.Method == http.MethodPut {
			f.repositories[repository] = true
		}
	}
	resp := w.Result()
	resp.Request = r
	if tag := r.URL.Path; r.Method == http.MethodPut && strings.Contains(tag, "/manifests/") &&
		resp.StatusCode == http.StatusCreated {
		if f.written[tag] == nil {
			f.written[tag] = map[string]bool{}
		}
		f.written[tag][oci.DigestOf(body).String()] = true
	}
	return resp
}

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	images := localregistry.New(t)
	f := &fleet{
		backend: images, config: inCluster(t), written: map[string]map[string]bool{}, repositories: map[string]bool{},
	}
	for i := range n {
		f.servers = append(f.servers, start(t, func(o *registry.Options) {
			o.Indexer = noIndexer{}
			o.Backend = &registry.BackendOptions{
				Host: "backend.example.org", Transport: toFleet{f: f, from: i},
				Remote:  remote.Options{Transport: toFleet{f: f, from: i}, Attempts: 1},
				Cluster: wrapped(f.config, func(next http.RoundTripper) http.RoundTripper { return toFleet{f, i, next} }),
			}
		}))
	}
	return f
}

// claims returns the number of claims in the cluster of a repository and of the name of it.
func (f *fleet) claims(t *testing.T, repository string) int {
	t.Helper()
	return len(claimsIn(t, f.config, repository))
}

// pushing is a push through a server.
type pushing struct {
	repository, tag, content string
	// send sends another request than a push of the content, and returns the status of the response.
	send func(context.Context, *server) int

	cancel context.CancelFunc
	failed bool
	status int
}

// manifestOf returns a manifest that differs for each content.
func manifestOf(content string) []byte {
	raw, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": oci.MediaTypeOCIIndex, "manifests": []any{},
		"annotations": map[string]string{"content": content},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// pushManifest pushes content through a server, and returns the status of the response.
func (s *server) pushManifest(ctx context.Context, repository, tag, content string) int {
	status, _ := s.tryPush(ctx, repository, tag, content)
	return status
}

// tryPush pushes content through a server, and returns the status and the body of the response.
func (s *server) tryPush(ctx context.Context, repository, tag, content string) (status int, body string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPut, "http://"+host+"/v2/"+repository+"/manifests/"+
		tag, bytes.NewReader(manifestOf(content)))
	r.Header.Set("Content-Type", string(oci.MediaTypeOCIIndex))
	r.Header.Set("Authorization", "Bearer "+s.admin)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// race runs pushes, one for each server, in an order of requests that choose draws. It ends servers at up to
// mostFailures requests.
func (f *fleet) race(ctx context.Context, pushes []*pushing, choose func(n int, what string) int, mostFailures int) {
	arrivals, done := make(chan *waiting), make(chan int)
	ctx = context.WithValue(ctx, arrivalsKey{}, arrivals)
	for i, p := range pushes {
		var own context.Context
		own, p.cancel = context.WithCancel(ctx)
		go func() {
			var status int
			if p.send != nil {
				status = p.send(own, f.servers[i])
			} else {
				status = f.servers[i].pushManifest(own, p.repository, p.tag, p.content)
			}
			if !p.failed {
				p.status = status
			}
			done <- i
		}()
	}
	running, held := len(pushes), map[int]*waiting{}
	defer func() { // The property ends a run that draws too much.
		for _, p := range pushes {
			p.cancel()
		}
		for _, w := range held {
			w.outcome <- lostBefore
		}
		for running > 0 {
			select {
			case <-done:
				running--
			case w := <-arrivals:
				w.outcome <- lostBefore
			}
		}
	}()
	var next, steps int
	for running > 0 {
		if len(held) < running {
			select {
			case i := <-done:
				running--
				pushes[i].cancel()
			case w := <-arrivals:
				if pushes[w.from].failed {
					w.outcome <- lostBefore
				} else {
					if held[w.from] != nil {
						w.outcome <- lostBefore
						panic("a push sends two requests at the same time")
					}
					held[w.from] = w
				}
			}
			continue
		}
		if steps == 0 || held[next] == nil {
			senders := slices.Sorted(maps.Keys(held))
			next, steps = senders[choose(len(senders), "next")], 1+choose(6, "steps")
		}
		steps--
		f.ordered++
		treatment := served
		if mostFailures > 0 {
			switch choose(30, "failure") {
			case 1:
				treatment = lostBefore
			case 2:
				treatment = lostAfter
			}
		}
		w := held[next]
		delete(held, w.from)
		if treatment != served {
			mostFailures--
			pushes[w.from].failed = true
			pushes[w.from].cancel()
		}
		w.outcome <- treatment
	}
}

// checkRaces checks a property of races in numbered runs. The function choose draws a number below n.
func checkRaces(
	t *testing.T, check func(t *testing.T, rt *rapid.T, f *fleet, run int, choose func(n int, what string) int),
) {
	t.Helper()
	f, run := newFleet(t, 4), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		check(t, rt, f, run, func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) })
	})
	if f.ordered == 0 {
		t.Error("the races chose the order of no request")
	}
}

// TestOneOfSeveralContentsOfAVersionIsAccepted pushes several contents of one version through servers in front of one
// registry, whose requests are served in any order, and of which some end at any request.
func TestOneOfSeveralContentsOfAVersionIsAccepted(t *testing.T) {
	checkRaces(t, func(t *testing.T, rt *rapid.T, f *fleet, n int, choose func(n int, what string) int) {
		repository, spellings := fmt.Sprintf("acme/provider-boat%d", n), []string{"v1.2.0", "1.2.0", "v1.02.0"}
		var pushes []*pushing
		for range 2 + choose(2, "pushes") {
			pushes = append(pushes, &pushing{
				repository: repository, tag: spellings[max(0, choose(6, "spelling")-3)],
				content: strconv.Itoa(choose(3, "content")),
			})
		}
		failures := choose(3, "failures")
		f.race(t.Context(), pushes, choose, failures)
		f.check(t, rt, repository, spellings, pushes)
	})
}

// check checks the results of a race, and that a later push gets the same result.
func (f *fleet) check(t *testing.T, rt *rapid.T, repository string, spellings []string, pushes []*pushing) {
	var accepted, refused, failures int
	contents := map[string]bool{}
	for _, p := range pushes {
		switch {
		case p.failed:
			failures++
		case p.status == http.StatusCreated:
			accepted++
			contents[p.content] = true
		case p.status == http.StatusConflict:
			refused++
		default:
			rt.Fatalf("a push of %s to %s: status %d", p.content, p.tag, p.status)
		}
	}
	if len(contents) > 1 || failures == 0 && len(contents) != 1 {
		rt.Fatalf("the servers accept the contents %v", slices.Sorted(maps.Keys(contents)))
	}
	// A server that takes part later completes what the others have begun.
	last := f.servers[len(f.servers)-1]
	var late []*pushing
	for i := range 2 {
		p := &pushing{tag: spellings[0], content: fmt.Sprintf("late %d", i)}
		late = append(late, p)
		switch status := last.pushManifest(t.Context(), repository, p.tag, p.content); {
		case status == http.StatusCreated:
			contents[p.content] = true
		case status != http.StatusConflict:
			rt.Fatalf("a later push: status %d", status)
		}
	}
	if len(contents) > 1 {
		rt.Fatalf("the servers accept the contents %v", slices.Sorted(maps.Keys(contents)))
	}
	written := map[string]bool{}
	if left := f.claims(t, repository); failures == 0 && left > 0 {
		rt.Fatalf("the servers leave %d claims", left)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, tag := range spellings {
		had := f.written["/v2/"+repository+"/manifests/"+tag]
		maps.Copy(written, had)
		isWanted := func(p *pushing) bool { return p.tag == tag && had[oci.DigestOf(manifestOf(p.content)).String()] }
		if len(had) > 0 && !slices.ContainsFunc(pushes, isWanted) && !slices.ContainsFunc(late, isWanted) {
			rt.Fatalf("the registry has the tag %s, for which no client pushed the content", tag)
		}
	}
	for content := range contents {
		if !written[oci.DigestOf(manifestOf(content)).String()] {
			rt.Fatalf("%s was accepted, and the registry has never had it", content)
		}
	}
	if len(written) != 1 {
		rt.Fatalf("the registry had %d contents of %s", len(written), spellings[0])
	}
}

// tags returns the tags of a repository of the registry.
func (f *fleet) tags(t *testing.T, repository string) []string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://backend.example.org/v2/"+repository+
		"/tags/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tags []string }
	_ = json.NewDecoder(f.serve(r).Body).Decode(&list) // A repository that does not exist has no tags.
	return list.Tags
}

// firstTags are the tags of pushes to new repositories.
var firstTags = []string{"v1.0.0", "v1.1.0"}

// TestOneOfSeveralSimilarNamesIsAccepted creates several repositories with similar names through servers in front of
// one registry, whose requests are served in any order, and of which some end at any request.
func TestOneOfSeveralSimilarNamesIsAccepted(t *testing.T) {
	checkRaces(t, func(t *testing.T, rt *rapid.T, f *fleet, n int, choose func(n int, what string) int) {
		var names []string
		for _, separator := range []string{"-", "_", "."} {
			names = append(names, fmt.Sprintf("acme/boat%sx%d", separator, n))
		}
		var pushes []*pushing
		for range 2 + choose(2, "pushes") {
			pushes = append(pushes, &pushing{
				repository: names[choose(len(names), "name")], tag: firstTags[choose(len(firstTags), "tag")],
				content: strconv.Itoa(choose(2, "content")),
			})
		}
		// The clients have uploaded the blobs.
		f.mu.Lock()
		for _, p := range pushes {
			f.repositories[p.repository] = true
		}
		f.mu.Unlock()
		failures := choose(3, "failures")
		f.race(t.Context(), pushes, choose, failures)
		f.checkNames(t, rt, names, pushes)
	})
}

// checkNames checks that one of several similar names has tags, and that it is free for later pushes.
func (f *fleet) checkNames(t *testing.T, rt *rapid.T, names []string, pushes []*pushing) {
	accepted, failures := map[string]bool{}, 0
	for _, p := range pushes {
		switch {
		case p.failed:
			failures++
		case p.status == http.StatusCreated:
			accepted[p.repository] = true
		case p.status != http.StatusConflict:
			rt.Fatalf("a push to %s: status %d", p.repository, p.status)
		}
	}
	if len(accepted) > 1 || failures == 0 && len(accepted) != 1 {
		rt.Fatalf("the servers accept the names %q", slices.Sorted(maps.Keys(accepted)))
	}
	last := f.servers[len(f.servers)-1]
	for _, name := range names {
		switch status := last.pushManifest(t.Context(), name, "v2.0.0", name); {
		case status == http.StatusCreated:
			accepted[name] = true
		case status != http.StatusConflict:
			rt.Fatalf("a later push to %s: status %d", name, status)
		}
	}
	var tagged []string
	for _, name := range names {
		if len(f.tags(t, name)) > 0 {
			tagged = append(tagged, name)
		}
		if left := f.claims(t, name); failures == 0 && left > 0 {
			rt.Fatalf("the servers leave %d claims", left)
		}
	}
	if !slices.Equal(tagged, slices.Sorted(maps.Keys(accepted))) || len(tagged) != 1 {
		rt.Fatalf(
			"the servers accept the names %q, and the registry has the tags of %q", slices.Sorted(maps.Keys(accepted)), tagged,
		)
	}
	for _, tag := range firstTags { // Servers that failed have left claims of these versions.
		if status := last.pushManifest(t.Context(), tagged[0], tag, "late"); status != http.StatusCreated &&
			status != http.StatusConflict {
			rt.Fatalf("a later push of %s: status %d", tag, status)
		}
	}
}

// TestADeletedVersionStaysRemoved yanks and deletes a version through two servers, whose requests the registry serves
// in any order.
func TestADeletedVersionStaysRemoved(t *testing.T) {
	f := newFleet(t, 2)
	n, deleted := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		ref := oci.MustParseReference(fmt.Sprintf("%s/acme/boat%d:v1.0.0", host, n))
		content := build(t, packageYAML("boat", fmt.Sprintf("Boat%d", n)))
		client := f.servers[0].client(t, f.servers[0].admin)
		if _, err := client.Push(t.Context(), ref, content); err != nil {
			rt.Fatal(err)
		}
		ref = ref.WithDigest(content.Root().Digest)
		yank := func(ctx context.Context, s *server) int {
			if _, err := packagestatus.Write(ctx, s.client(t, s.admin), ref, catalog.Status{State: catalog.Yanked}); err != nil {
				return http.StatusConflict
			}
			return http.StatusCreated
		}
		remove := func(ctx context.Context, s *server) int {
			if err := s.client(t, s.admin).Delete(ctx, ref); err != nil {
				return http.StatusConflict
			}
			return http.StatusAccepted
		}
		choose := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
		f.race(t.Context(), []*pushing{{send: yank}, {send: remove}}, choose, 0)
		if err := client.Exists(t.Context(), ref); err == nil {
			return
		}
		deleted++
		if s, err := packagestatus.Read(t.Context(), client, ref); err != nil || s == nil || s.State != catalog.Removed {
			rt.Fatalf("the status of the deleted version is %+v, %v", s, err)
		}
	})
	if deleted == 0 {
		t.Error("no race deleted the version")
	}
}

// noIndexer indexes nothing.
type noIndexer struct{}

// Load implements [registry.Indexer].
func (noIndexer) Load(context.Context, string) (*catalog.Catalog, error) {
	return &catalog.Catalog{}, nil
}

// Update implements [registry.Indexer].
func (noIndexer) Update(
	_ context.Context, _ string, previous *catalog.Catalog, _, _ []string,
) (*catalog.Catalog, error) {
	return previous, nil
}
