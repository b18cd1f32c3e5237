package controller_test

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A runtime image of another repository is resolved once: the runtime keeps the digest when the tag moves and
// when the manager restarts, and the status of the revision shows it. Only another image in the package
// replaces it.
//
// hardening: E11, G12
func TestRuntimeImageIsPinnedToOneDigest(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	image, one := r.push(t, "elsewhere/runtime:v1", meta("Configuration", "image", ""))
	stream := func(image string) string {
		return meta("Provider", "pinned", "spec:\n  controller:\n    image: "+image+"\n") + crd("pinned.test", "Thing", "one")
	}
	ref, _ := r.push(t, "runtime/pinned:v1", stream(image))
	p := env.NewProvider("pinned", ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilRuns(t, s, p, one.String())
	if got, want := s.Revisions(t, p)[0].RuntimeStatus().RuntimeImage, image+"@"+one.String(); got != want {
		t.Errorf("the status shows the runtime image %s, want %s", got, want)
	}

	_, moved := r.push(t, "elsewhere/runtime:v1", meta("Configuration", "other-image", ""))
	waitReconciled(t, s.Env, p)
	untilSettled(t, s, p)
	untilRuns(t, s, p, one.String())
	if got := s.Revisions(t, p)[0].RuntimeStatus().RuntimeImage; !strings.HasSuffix(got, one.String()) {
		t.Errorf("the runtime image became %s", got)
	}

	next, _ := r.push(t, "runtime/pinned:v2", stream(image+"@"+moved.String()))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	untilSettled(t, s, p)
	untilRuns(t, s, p, moved.String())
	remove(t, s, p)
}
