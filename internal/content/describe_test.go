package content_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// A tag is resolved by the request for its manifest. What was described once is
// described again, by another process too, without a connection.
func TestDescribe(t *testing.T) {
	for name, text := range map[string]string{
		"small": stream,
		"large": stream + strings.Repeat("# "+strings.Repeat("x", 70)+"\n", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			home := newRegistry(t)
			o := content.Plain(pushStream(t, home.address, text))
			store, err := oci.OpenStore(filepath.Join(t.TempDir(), "store"), oci.StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			home.reset()
			online := newSource(t, func(o *content.Options) { o.Store = store })
			first, err := online.Describe(t.Context(), o, oci.Digest{})
			if err != nil {
				t.Fatal(err)
			}
			online.Close()
			if first.Meta.Name != "content" || first.Claimed || first.Digest.IsZero() {
				t.Errorf("%+v", first)
			}
			if asked := home.asked(""); len(asked) != 2 {
				t.Errorf("%d requests", len(asked))
			}
			offline := newSource(t, func(o *content.Options) {
				o.Store = store
				o.Remote.Dial = func(context.Context, string, string) (net.Conn, error) {
					t.Error("it was dialed")
					return nil, net.ErrClosed
				}
			})
			again, err := offline.Describe(t.Context(), content.Plain(o.Ref.WithDigest(first.Digest)), oci.Digest{})
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

// What a mirror does not have is asked of the origin, as for everything else.
func TestDescribeByMirrors(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	for i, status := range []int{http.StatusNotFound, http.StatusBadGateway, http.StatusUnauthorized} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			mirror := mirrorOf(t, home)
			mirror.does(answer(status))
			o := content.Origin{Ref: ref, Places: []content.Place{{Ref: mirror.ref()}, {Ref: ref}}}
			source := newSource(t, nil)
			tags, err := source.Tags(t.Context(), o)
			if err != nil || len(tags) != 1 || tags[0] != "v1.0.0" {
				t.Errorf("%d: %q, %v", i, tags, err)
			}
			d, err := source.Describe(t.Context(), o, oci.Digest{})
			if err != nil || d.Meta.Name != "content" {
				t.Errorf("%+v, %v", d, err)
			}
			if len(mirror.asked("")) == 0 {
				t.Error("the mirror was not asked")
			}
		})
	}
}
