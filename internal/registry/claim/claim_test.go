package claim

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/xpkg-dev/xpkg/internal/registry/annotated"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// process is a server that publishes a version. It pauses before each request, and after its decision.
type process struct {
	handler http.Handler
	paused  chan point
	resume  chan bool
	at      point
	decided oci.Digest
	err     error
}

// point is a point at which a process pauses.
type point int

const (
	request point = iota
	decision
	end
)

// RoundTrip implements [http.RoundTripper].
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	p.pause(request)
	return direct{p.handler}.RoundTrip(r)
}

func (p *process) pause(at point) {
	p.paused <- at
	<-p.resume
}

// step continues a process to its next point.
func (p *process) step() {
	if p.at != end {
		p.resume <- true
		p.at = <-p.paused
	}
}

// continueTo continues a process to a point.
func (p *process) continueTo(at point) {
	for p.at < at {
		p.step()
	}
}

// newProcess returns a process that publishes content as a version, and is before its first request.
func newProcess(ctx context.Context, handler http.Handler, ref oci.Reference, content oci.Artifact) *process {
	p := &process{handler: handler, paused: make(chan point), resume: make(chan bool)}
	go func() {
		p.decided, p.err = publish(ctx, p, ref, content)
		p.paused <- end
	}()
	p.at = <-p.paused
	return p
}

// publish publishes content as a version, and returns the content that the version has.
func publish(ctx context.Context, p *process, ref oci.Reference, content oci.Artifact) (oci.Digest, error) {
	client := remote.New(remote.Options{Transport: p, Attempts: 1})
	defer client.Close()
	v := Version{Client: client, Ref: ref, Published: func(ctx context.Context) (oci.Digest, error) {
		d, err := client.Resolve(ctx, ref)
		if err != nil {
			return oci.Digest{}, nil //nolint:nilerr // The registry of the test does not fail.
		}
		return d.Digest, nil
	}}
	decided, err := v.Decide(ctx, content.Root().Digest)
	p.pause(decision)
	if err != nil || decided != content.Root().Digest {
		return decided, err
	}
	if _, err := client.Push(ctx, ref, content); err != nil {
		return decided, err
	}
	return decided, v.Clear(ctx)
}

// TestTwoServersDecideOnOneContent interrupts two servers at every request: the first one makes some requests, then the second one, then
// the first one decides, then the second one, and then they publish.
func TestTwoServersDecideOnOneContent(t *testing.T) {
	const most = 16
	a, b := annotated.New("a", nil), annotated.New("b", nil)
	for _, contents := range [][2]oci.Artifact{{a, b}, {b, a}, {a, a}} {
		for first := range most {
			for second := range most {
				yes := true
				images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}, API: config.ConfigAPI{DeleteEnabled: &yes}})
				ref := oci.MustParseReference("registry.example.org/acme/boats:v1.0.0")
				p, q := newProcess(t.Context(), images, ref, contents[0]), newProcess(t.Context(), images, ref, contents[1])
				for range first {
					p.step()
				}
				for range second {
					q.step()
				}
				p.continueTo(decision)
				q.continueTo(decision)
				p.continueTo(end)
				q.continueTo(end)
				if p.err != nil || q.err != nil || p.decided != q.decided {
					t.Errorf("after %d and %d requests, the servers decide on %s and %s: %v, %v", first, second, p.decided.Short(), q.decided.Short(), p.err, q.err)
				}
				_ = images.Close()
			}
		}
	}
}

func TestTagsOfClaims(t *testing.T) {
	content := oci.DigestOf([]byte("content"))
	v := version.Parse("v1.2.3-rc.1")
	tag := element{12, contested, content}.tag(key(&v))
	if e, k, ok := parseTag(tag); !oci.ValidTag(tag) || !ok || e != (element{12, contested, content}) || k != key(&v) {
		t.Errorf("%s is read as %v, %s, %t", tag, e, k, ok)
	}
	for _, spelling := range []string{"1.2.3-rc.1", "v1.02.3-rc.1"} {
		if w := version.Parse(spelling); key(&w) != key(&v) {
			t.Errorf("%s has another key", spelling)
		}
	}
	for _, other := range []string{"v1.0.0", "sha256-" + content.Hex(), "sha256-" + content.Hex() + ".status", tag + "x", tag[:len(tag)-1], "x" + tag} {
		if IsTag(other) {
			t.Errorf("%s is the tag of a claim", other)
		}
	}
}

// TestTagOfAnotherServer keeps the tag for which a content was proposed when a server that wants another content and spelling continues it.
func TestTagOfAnotherServer(t *testing.T) {
	yes := true
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}, API: config.ConfigAPI{DeleteEnabled: &yes}})
	t.Cleanup(func() { _ = images.Close() })
	client := remote.New(remote.Options{Transport: direct{images}, Attempts: 1})
	t.Cleanup(client.Close)
	version := func(tag string) Version {
		return Version{
			Client: client, Ref: oci.MustParseReference("registry.example.org/acme/boats:" + tag),
			Published: func(context.Context) (oci.Digest, error) { return oci.Digest{}, nil },
		}
	}
	content := oci.DigestOf([]byte("first"))
	for _, v := range []struct {
		tag    string
		wanted oci.Digest
	}{{"v1.0.0", content}, {"1.0.0", oci.DigestOf([]byte("second"))}} {
		if decided, err := version(v.tag).Decide(t.Context(), v.wanted); err != nil || decided != content {
			t.Fatalf("%s: %s, %v", v.tag, decided.Short(), err)
		}
	}
	if tag, err := version("1.0.0").TagOf(t.Context(), content); err != nil || tag != "v1.0.0" {
		t.Errorf("the tag of the content is %q: %v", tag, err)
	}
}

// direct sends requests to a handler.
type direct struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
