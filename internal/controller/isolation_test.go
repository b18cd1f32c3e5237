package controller_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Bad packages do not affect others: beside registries that refuse, hang up or never
// respond, and content that is damaged, malformed or far too large, good packages are
// installed and upgraded. The condition of each bad package contains the reason.
func TestBadPackagesDoNotAffectOthers(t *testing.T) {
	s := newEnv(t)
	s.start(t)
	hole, good := newRegistry(t), newRegistry(t)
	hole.setFault(neverResponds)
	// More packages of a registry that never responds than the manager has workers.
	for i := range 80 {
		s.CreateTemporary(
			t, newConfiguration(fmt.Sprintf("bad-hole-%d", i), fmt.Sprintf("%s/acme/hole-%d:v1", hole.address, i)),
		)
	}
	bad := map[string]string{}
	for name, c := range map[string]struct{ ref, says string }{
		"refuses":   {port.Free(t) + "/acme/any:v1", "RegistryUnavailable"},
		"hangs-up":  {faulty(t, hangUp) + "/acme/any:v1", "RegistryUnavailable"},
		"no-tag":    {good.address + "/acme/none:v1", "RepositoryNotFound"},
		"huge":      {faulty(t, tooLarge) + "/acme/huge:v1", "TooLarge"},
		"damaged":   {faulty(t, damaged) + "/acme/damaged:v1", "DigestMismatch"},
		"malformed": {pushed(t, good, "malformed", "kind: [\n"), ""},
		"no-meta":   {pushed(t, good, "nometa", crd("nometa.test", "Thing", "one")[4:]), ""},
		"bad-crd": {pushed(
			t, good, "badcrd",
			provider("badcrd", strings.Replace(crd("badcrd.test", "Thing", "one"), "scope: Cluster", "scope: Nowhere", 1)),
		), ""},
	} {
		p := env.NewProvider("bad-"+name, c.ref)
		s.CreateTemporary(t, p)
		bad[p.Name] = c.says
	}
	p := env.NewProvider("bad-good", pushed(t, good, "good", provider("good", crd("goodbeside.test", "Thing", "one"))))
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	next, _ := good.push(t, "acme/good:v2", provider("good", crd("goodbeside.test", "Thing", "two")))
	upgradeTo(t, s, p, next)

	for name, says := range bad {
		p := env.NewProvider(name, "")
		s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, says)
		s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, says)
		t.Logf("%s: %s", name, p.GetCondition(v1.TypeReady).Message)
		if ready := p.GetCondition(v1.TypeReady); ready.Reason == "Unknown" || ready.Reason == "" {
			t.Errorf("%s has no reason of its own: %+v", name, ready)
		}
		if n := len(s.Revisions(t, p)); n > 0 {
			t.Errorf("%s has %d revisions", name, n)
		}
	}
}

func faulty(t *testing.T, fault func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	r := newRegistry(t)
	r.setFault(fault)
	return r.address
}

func pushed(t *testing.T, r *registry, name, stream string) string {
	t.Helper()
	ref, _ := r.push(t, "acme/"+name+":v1", stream)
	return ref
}

// tooLarge returns a registry with a manifest that names a layer of a tebibyte.
func tooLarge(w http.ResponseWriter, r *http.Request) bool {
	return serve(w, r, manifestOf(1<<40), false)
}

// damaged returns a registry whose manifests do not match their digests.
func damaged(w http.ResponseWriter, r *http.Request) bool {
	return serve(w, r, manifestOf(1), true)
}

func manifestOf(size int64) string {
	blob := oci.DigestOf([]byte("any"))
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2},`+
		`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":%q,"size":%d,"annotations":{"io.crossplane.xpkg":"base"}}]}`,
		oci.MediaTypeOCIManifest, oci.DigestOf([]byte("{}")), blob, size)
}

// serve answers for manifests. Lies promises another digest than the content has.
func serve(w http.ResponseWriter, r *http.Request, body string, lies bool) bool {
	if !strings.Contains(r.URL.Path, "/manifests/") {
		return r.URL.Path != "/v2/" && answer(http.StatusNotFound)(w, r)
	}
	promised := oci.DigestOf([]byte(body))
	if lies {
		promised = oci.DigestOf([]byte("something else"))
	}
	w.Header().Set("Content-Type", string(oci.MediaTypeOCIManifest))
	w.Header().Set("Docker-Content-Digest", promised.String())
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body)
	}
	return true
}
