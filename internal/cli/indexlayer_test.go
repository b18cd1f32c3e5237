package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// watched is a registry that records its requests.
type watched struct {
	address string

	mu    sync.Mutex
	paths []string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	target, err := url.Parse("http://" + cluster.Registry(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.paths = append(w.paths, r.Method+" "+r.URL.Path)
		w.mu.Unlock()
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.address = strings.TrimPrefix(server.URL, "http://")
	return w
}

// reads returns the number of downloads since the last call.
func (w *watched) reads(d oci.Digest) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, p := range w.paths {
		if strings.HasPrefix(p, "GET ") && strings.HasSuffix(p, d.String()) {
			n++
		}
	}
	w.paths = nil
	return n
}

const thing = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things%[1]d.hello.test}
spec:
  group: hello.test
  scope: Cluster
  names: {kind: Thing%[1]d, plural: things%[1]d, singular: thing%[1]d, listKind: Thing%[1]dList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

const manyThings = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: hello}\n"

// home sets a temporary home folder for commands.
func home(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

func TestInspectWithoutBaseLayer(t *testing.T) {
	home(t)
	registry, dir := newWatched(t), t.TempDir()
	var crds strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&crds, "---\n"+thing, i)
	}
	for name, text := range map[string]string{"crossplane.yaml": manyThings, "crds.yaml": crds.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, ref := filepath.Join(dir, "hello.xpkg"), registry.address+"/org/hello:v1"
	runXpkg(t, "build", "-f", dir, "-o", file)
	runXpkg(t, "push", "-f", file, ref)
	base := baseLayer(t, file)

	var shown []string
	for _, c := range []struct {
		args  []string
		reads int
		state string
	}{
		{[]string{"--trust-index"}, 0, "unproven"},
		{nil, 1, "proven"},
		{nil, 0, "proven"},
		{[]string{"--trust-index"}, 0, "proven"},
	} {
		registry.reads(base)
		out := runXpkg(t, append([]string{"inspect", ref, "-o", "json"}, c.args...)...)
		if got := registry.reads(base); got != c.reads {
			t.Errorf("inspect %v read the base layer %d times, want %d", c.args, got, c.reads)
		}
		if !strings.Contains(out, `"indexLayer": "`+c.state+`"`) {
			t.Errorf("inspect %v does not say %s", c.args, c.state)
		}
		_, objects, _ := strings.Cut(out, `"objects"`)
		shown = append(shown, objects)
	}
	for _, objects := range shown {
		if objects != shown[0] || strings.Count(objects, `"kind"`) != 1000 {
			t.Fatalf("%d objects are shown", strings.Count(objects, `"kind"`))
		}
	}
}

func baseLayer(t *testing.T, file string) oci.Digest {
	t.Helper()
	a, err := archive.Open(t.Context(), file, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	if err != nil || m.Base == nil {
		t.Fatalf("no base layer (%v)", err)
	}
	return m.Base.Digest
}

// A wrong index layer is reported, for every difference, and never recorded as verified.
func TestLyingIndexLayer(t *testing.T) {
	stream := []byte(manyThings + "---\n" + fmt.Sprintf(thing, 1))
	honest := encodedIndex(t, stream)
	for name, index := range map[string][]byte{
		"OtherMeta":   encodedIndex(t, bytes.Replace(stream, []byte("name: hello"), []byte("name: other"), 1)),
		"OtherObject": encodedIndex(t, bytes.Replace(stream, []byte("scope: Cluster"), []byte("scope: Namespaced"), 1)),
		"NoObject":    encodedIndex(t, []byte(manyThings)),
		"Damaged":     honest[:len(honest)-1],
		"NoIndex":     []byte("something else"),
		"Empty":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			home(t)
			file := filepath.Join(t.TempDir(), "lie.xpkg")
			image, err := image.Build(t.Context(), image.Input{PackageYAML: stream, Extra: []image.ExtraLayer{
				{Annotation: "xpkg-index", Files: []image.File{{Path: ".xpkg/index", Data: index}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := oci.Copy(t.Context(), archive.ToFile(file, archive.WriteOptions{}, oci.Limits{}), image); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				out := runXpkg(t, "inspect", file, "-o", "json")
				for _, want := range []string{
					`"indexLayer": "contradicts"`, `"from": "package.yaml"`, `"name": "hello"`, `"name": "things1.hello.test"`,
				} {
					if !strings.Contains(out, want) {
						t.Errorf("inspect does not say %s:\n%s", want, out)
					}
				}
			}
			var out, errs bytes.Buffer
			env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
			if code := cli.Main(t.Context(), []string{"xpkg", "lint", file}, env); code != 4 ||
				!strings.Contains(out.String(), "error IndexMismatch: ") {
				t.Errorf("lint ends with %d and says %s", code, out.String())
			}
		})
	}
}

func encodedIndex(t *testing.T, stream []byte) []byte {
	t.Helper()
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.New(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return index.Encode(x)
}
