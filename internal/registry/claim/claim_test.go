package claim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/xpkg-dev/xpkg/internal/registry/annotated"
	"github.com/xpkg-dev/xpkg/internal/testing/inprocess"
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
	return inprocess.Transport{Handler: p.handler}.RoundTrip(r)
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
	return decided, v.Clear(ctx, "")
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
	tag := element{12, contested, content}.tag(versionKey(&v))
	if e, k, ok := parseTag(tag); !oci.ValidTag(tag) || !ok || e != (element{12, contested, content}) || k != versionKey(&v) {
		t.Errorf("%s is read as %v, %s, %t", tag, e, k, ok)
	}
	for _, spelling := range []string{"1.2.3-rc.1", "v1.02.3-rc.1"} {
		if w := version.Parse(spelling); versionKey(&w) != versionKey(&v) {
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
	client := remote.New(remote.Options{Transport: inprocess.Transport{Handler: images}, Attempts: 1})
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

// forgetful is a registry that, when a manifest is deleted while it is pushed again, keeps its tag without the manifest, as CNCF distribution does.
type forgetful struct {
	http.Handler
	// orphans are the tags without a manifest.
	orphans map[string]bool
}

// ServeHTTP implements [http.Handler].
func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, reference, _ := strings.Cut(r.URL.Path, "/manifests/")
	switch {
	case r.Method == http.MethodPut:
		delete(f.orphans, reference)
		f.Handler.ServeHTTP(w, r)
	case f.orphans[reference]:
		http.NotFound(w, r)
	case strings.HasSuffix(r.URL.Path, "/tags/list"):
		answer := httptest.NewRecorder()
		f.Handler.ServeHTTP(answer, r)
		var list struct {
			Name string   `json:"name"`
			Tags []string `json:"tags"`
		}
		_ = json.Unmarshal(answer.Body.Bytes(), &list) // The registry of the test writes it.
		list.Tags = append(list.Tags, slices.Collect(maps.Keys(f.orphans))...)
		_ = json.NewEncoder(w).Encode(list)
	default:
		f.Handler.ServeHTTP(w, r)
	}
}

// TestARegistryThatListsNoTagsDecidesNothing checks that a push fails if the registry does not list the claims that it has accepted.
func TestARegistryThatListsNoTagsDecidesNothing(t *testing.T) {
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	t.Cleanup(func() { _ = images.Close() })
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tags/list") {
			_, _ = w.Write([]byte(`{"name": "acme/boats", "tags": null}`))
			return
		}
		images.ServeHTTP(w, r)
	})
	client := remote.New(remote.Options{Transport: inprocess.Transport{Handler: handler}, Attempts: 1})
	t.Cleanup(client.Close)
	v := Version{
		Client: client, Ref: oci.MustParseReference("registry.example.org/acme/boats:v1.0.0"),
		Published: func(context.Context) (oci.Digest, error) { return oci.Digest{}, nil },
	}
	if decided, err := v.Decide(t.Context(), oci.DigestOf([]byte("content"))); !errors.Is(err, remote.ErrRegistryUnavailable) {
		t.Errorf("decided %s, error %v", decided, err)
	}
}

// TestClearDeletesWhatOthersHaveLeft deletes the claims of all published versions, also those whose manifests the registry lost, and keeps those of a
// version without a tag.
func TestClearDeletesWhatOthersHaveLeft(t *testing.T) {
	yes := true
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}, API: config.ConfigAPI{DeleteEnabled: &yes}})
	t.Cleanup(func() { _ = images.Close() })
	f := &forgetful{images, map[string]bool{}}
	client := remote.New(remote.Options{Transport: inprocess.Transport{Handler: f}, Attempts: 1})
	t.Cleanup(client.Close)
	repository := oci.MustParseReference("registry.example.org/acme/boats:v1.0.0")
	content := annotated.New("content", nil)
	claims := map[string]string{}
	for _, tag := range []string{"v1.0.0", "v1.1.0", "v2.0.0"} {
		v := Version{
			Client: client, Ref: repository.WithTag(tag), Published: func(context.Context) (oci.Digest, error) { return oci.Digest{}, nil },
		}
		if _, err := v.Decide(t.Context(), content.Root().Digest); err != nil {
			t.Fatal(err)
		}
		claims[tag] = element{1, proposed, content.Root().Digest}.tag(v.key())
		if tag != "v2.0.0" {
			if _, err := client.Push(t.Context(), v.Ref, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	nameTag := element{1, proposed, content.Root().Digest}.tag(NameKey("acme/boats"))
	if err := put(t.Context(), client, repository, nameTag, nil); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"v1.0.0", "v1.1.0"} {
		if err := remove(t.Context(), client, repository.WithTag(claims[lost])); err != nil {
			t.Fatal(err)
		}
		f.orphans[claims[lost]] = true
	}
	v := Version{Client: client, Ref: repository}
	if err := v.Clear(t.Context(), NameKey("acme/boats")); err != nil {
		t.Fatal(err)
	}
	tags, err := client.Tags(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, tag := range tags {
		if _, key, ok := parseTag(tag); ok {
			left = append(left, key)
		}
	}
	unpublished := Version{Ref: repository.WithTag("v2.0.0")}
	if want := []string{unpublished.key(), unpublished.key()}; !slices.Equal(left, want) {
		t.Errorf("claims of %q remain, want %q", left, want)
	}
}
