package controller_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
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

// An image that only the system knows that runs it does not fail the package: its health is the reported one. Once the
// image exists in the registry, the status has its digest.
func TestExternalRuntimeImageNeedNotExist(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes, s.options.MakeNamespace = runtime.Everywhere(runtime.External), true
	s.start(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "runtime/local:v1", meta(
		"Provider", "local", "spec:\n  controller:\n    image: "+r.address+"/elsewhere/local:v1\n",
	)+crd("local.test", "Thing", "one"))
	p := env.NewProvider("local", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionUnknown, "another system runs the runtime")
	recorded := func() string { return s.Revisions(t, p)[0].RuntimeStatus().RuntimeImage }
	if got, want := recorded(), r.address+"/elsewhere/local:v1"; got != want {
		t.Errorf("the status shows the runtime image %q, want %q", got, want)
	}
	image, digest := r.push(t, "elsewhere/local:v1", meta("Configuration", "image", ""))
	waitReconciled(t, s.Env, p)
	eventually(t, "the status has the digest", func() bool { return recorded() == image+"@"+digest.String() })
	remove(t, s, p)
}
