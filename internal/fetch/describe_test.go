package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// A tag is resolved by the request for its manifest. A package that was described
// once is described again without a connection, also by another process.
func TestDescribe(t *testing.T) {
	for name, text := range map[string]string{
		"small": stream,
		"large": stream + strings.Repeat("# "+strings.Repeat("x", 70)+"\n", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			home := newRegistry(t)
			o := fetch.Plain(pushStream(t, home.address, text))
			store, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			home.reset()
			online := sourcetest.New(t, func(o *fetch.Options) { o.Store = store })
			first, err := online.Describe(t.Context(), o, oci.Digest{})
			if err != nil {
				t.Fatal(err)
			}
			online.Close()
			if first.Meta.Name != "content" || first.Claimed || first.Digest.IsZero() {
				t.Errorf("%+v", first)
			}
			if asked := home.matching(""); len(asked) != 2 {
				t.Errorf("%d requests", len(asked))
			}
			offline := sourcetest.New(t, func(o *fetch.Options) {
				o.Store = store
				o.Remote.Dial = func(context.Context, string, string) (net.Conn, error) {
					t.Error("it was dialed")
					return nil, net.ErrClosed
				}
			})
			again, err := offline.Describe(t.Context(), fetch.Plain(o.Ref.WithDigest(first.Digest)), oci.Digest{})
			if err != nil || again.Meta.Name != "content" || again.Digest != first.Digest {
				t.Errorf("%+v, %v", again, err)
			}
			proof, err := offline.Prove(t.Context(), o, first.Digest)
			if err != nil || proof.Claimed {
				t.Errorf("%+v, %v", proof, err)
			}
		})
	}
}

// A manifest that a mirror does not have is requested from the origin, like all
// other content.
func TestDescribeByMirrors(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	for i, status := range []int{http.StatusNotFound, http.StatusBadGateway, http.StatusUnauthorized} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			mirror := mirrorOf(t, home)
			mirror.does(answer(status))
			o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: mirror.ref()}, {Ref: ref}}}
			source := sourcetest.New(t, nil)
			tags, err := source.Tags(t.Context(), o)
			if err != nil || !slices.Equal(tags.Tags, []string{"v1.0.0"}) || tags.From != ref || len(tags.Next.Endpoints) != 0 {
				t.Errorf("%d: %+v, %v", i, tags, err)
			}
			d, err := source.Describe(t.Context(), o, oci.Digest{})
			if err != nil || d.Meta.Name != "content" {
				t.Errorf("%+v, %v", d, err)
			}
			if len(mirror.matching("")) == 0 {
				t.Error("the mirror was not asked")
			}
		})
	}
}

// A mirror without tags is not evidence that there are none, even if the origin is
// unreachable.
func TestTagsOfAnEmptyMirror(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	mirror := mirrorOf(t, home)
	empty := func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, `{"name": "content/test", "tags": []}`)
		return true
	}
	mirror.does(empty)
	o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: mirror.ref()}, {Ref: ref}}}
	source := sourcetest.New(t, nil)
	if got, err := source.Tags(t.Context(), o); err != nil || !slices.Equal(got.Tags, []string{"v1.0.0"}) ||
		got.From != ref {
		t.Errorf("%+v, %v", got, err)
	}
	home.does(empty)
	if got, err := source.Tags(t.Context(), o); err != nil || len(got.Tags) != 0 || got.From != ref {
		t.Errorf("%+v, %v", got, err)
	}
	home.does(answer(http.StatusForbidden))
	if _, err := source.Tags(t.Context(), o); err == nil || !strings.Contains(err.Error(), "it lists no tags") {
		t.Errorf("%v", err)
	}
}
