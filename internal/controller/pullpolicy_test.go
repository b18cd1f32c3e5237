package controller_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// pullCase is one cell of the table of pull policies (packages guide,
// "spec.packagePullPolicy"), with a registry and a package of its own.
type pullCase struct {
	name   string
	policy corev1.PullPolicy
	// tag is empty for a package with a digest only, and digest is set if the reference
	// contains a digest.
	tag    string
	digest bool

	registry      *registry
	first, second oci.Digest
	p             *v1.Provider
}

// follows reports whether the package resolves its tag repeatedly.
func (c *pullCase) follows() bool { return c.policy == corev1.PullAlways && !c.digest }

func (c *pullCase) stream(version string) string {
	return provider(c.name, crd(c.name+".test", "Thing", version))
}

func (c *pullCase) repository() string { return "acme/" + c.name }

// prepare pushes the first version, and puts it into the package cache when it is
// never pulled.
func (c *pullCase) prepare(t *testing.T, s *testEnv) {
	t.Helper()
	c.registry = newRegistry(t)
	tag := c.tag
	if tag == "" {
		tag = "any"
	}
	ref, d := c.registry.push(t, c.repository()+":"+tag, c.stream("one"))
	c.first = d
	if c.tag == "" {
		ref = strings.TrimSuffix(ref, ":"+tag)
	}
	if c.digest {
		ref += "@" + d.String()
	}
	c.p = env.NewProvider(c.name, ref)
	c.p.Spec.PackagePullPolicy = c.policy
	if c.policy == corev1.PullNever {
		c.sideload(t, s)
	}
}

// sideload does what `xpkg cache add FILE --as REFERENCE` does.
func (c *pullCase) sideload(t *testing.T, s *testEnv) {
	t.Helper()
	packages, err := cache.Open(s.folder, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/package.xpkg"
	file(t, path, c.stream("one"))
	if _, err := packages.Add(t.Context(), path, c.p.Spec.Package); err != nil {
		t.Fatal(err)
	}
	if err := packages.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkNoRequests fails the test when the registry of the cell was asked anything.
func (c *pullCase) checkNoRequests(t *testing.T, s *testEnv, when string) {
	t.Helper()
	if seen := c.registry.requests(""); len(seen) > 0 {
		t.Errorf("%s %s asked a registry: %v", c.name, when, seen)
	}
}

// checkUnchanged checks that the package is healthy with the content it has.
func (c *pullCase) checkUnchanged(t *testing.T, s *testEnv, want oci.Digest, when string) {
	t.Helper()
	s.WaitHealthy(t, c.p)
	if got := c.p.Status.ResolvedDigest; got != want.String() {
		t.Errorf("%s %s stands for %s, want %s", c.name, when, got, want)
	}
}

func pullCases() []*pullCase {
	var out []*pullCase
	for _, k := range []struct {
		name, tag string
		digest    bool
	}{
		{"semver", "v1.3.0", false}, {"digest", "", true}, {"tagdigest", "v1.3.0", true}, {"channel", "latest", false},
	} {
		for _, policy := range []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullAlways, corev1.PullNever} {
			out = append(out, &pullCase{
				name: "policy-" + k.name + "-" + strings.ToLower(string(policy)), policy: policy, tag: k.tag, digest: k.digest,
			})
		}
	}
	return out
}

// Every cell of the guide's table, through the life of a package: install, restart of
// the manager, a tag that moves, a cache that is lost, a registry that is down, and
// one that asks for fewer requests. Zeros are counted where packages are dialed and
// at the registry.
//
// hardening: G10
func TestPullPolicies(t *testing.T) {
	s := newEnv(t)
	all := pullCases()
	for _, c := range all {
		c.prepare(t, s)
	}
	stop := s.start(t)
	for _, c := range all {
		s.CreateTemporary(t, c.p)
	}
	for _, c := range all {
		c.checkUnchanged(t, s, c.first, "after the install")
		switch heads := len(c.registry.requests("HEAD")) > 0; {
		case c.policy == corev1.PullNever:
			c.checkNoRequests(t, s, "when it was installed")
			if n := s.dials.To(c.registry.address); n > 0 {
				t.Errorf("%s dialed %d times", c.name, n)
			}
		case heads == c.digest:
			t.Errorf("%s asked %v", c.name, c.registry.requests(""))
		}
	}

	stop()
	resetRequests(all)
	stop = s.start(t)
	resolveAgain(t, s, all)
	for _, c := range all {
		c.checkUnchanged(t, s, c.first, "after a restart")
		if c.follows() {
			eventually(t, c.name+" is resolved", func() bool { return len(c.registry.requests("HEAD")) > 0 })
			if gets := c.registry.requests("GET"); len(gets) > 0 {
				t.Errorf("%s downloads what it has: %v", c.name, gets)
			}
			continue
		}
		c.checkNoRequests(t, s, "after a restart")
	}

	for _, c := range all {
		if c.tag != "" {
			_, c.second = c.registry.push(t, c.repository()+":"+c.tag, c.stream("two"))
		}
	}
	resolveAgain(t, s, all)
	for _, c := range all {
		want := c.first
		if c.follows() {
			want = c.second
			s.WaitPackage(t, c.p, "the moved tag is resolved", func() bool { return c.p.Status.ResolvedDigest == want.String() })
		} else {
			c.checkNoRequests(t, s, "when its tag had moved")
		}
		c.checkUnchanged(t, s, want, "after its tag had moved")
	}

	stop()
	if err := os.RemoveAll(s.folder); err != nil {
		t.Fatal(err)
	}
	stop = s.start(t)
	resolveAgain(t, s, all)
	for _, c := range all {
		if c.policy == corev1.PullNever {
			c.checkNoRequests(t, s, "when the cache was lost")
			s.WaitCondition(t, c.p, v1.TypeSynced, corev1.ConditionFalse, "NotCached")
			c.checkUnchanged(t, s, c.first, "after the cache was lost")
			continue
		}
		want := c.first
		if c.follows() {
			want = c.second
		}
		c.checkUnchanged(t, s, want, "after the cache was lost")
	}
	stop()
	for _, c := range all {
		if c.policy == corev1.PullNever {
			c.sideload(t, s)
		}
	}

	for _, c := range all {
		c.registry.setFault(hangUp)
	}
	stop = s.start(t)
	resetRequests(all)
	resolveAgain(t, s, all)
	checkUnreachable(t, s, all, "RegistryUnavailable")
	for _, c := range all {
		c.registry.setFault(answer(http.StatusTooManyRequests, "Retry-After", "3600"))
	}
	checkUnreachable(t, s, all, "Throttled")
	resetRequests(all)
	resolveAgain(t, s, all)
	for _, c := range all {
		c.checkNoRequests(t, s, "after Retry-After of an hour")
	}

	stop()
	if err := os.RemoveAll(s.folder); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		c.registry.setFault(hangUp)
	}
	stop = s.start(t)
	resolveAgain(t, s, all)
	for _, c := range all {
		s.WaitCondition(t, c.p, v1.TypeSynced, corev1.ConditionFalse, "")
		s.WaitHealthy(t, c.p)
	}
	// Deleted content cannot be restored now, and the package is not healthy.
	lost := all[0]
	if err := s.Client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "things." + lost.name + ".test",
	}}); err != nil {
		t.Fatal(err)
	}
	s.WaitCondition(t, lost.p, v1.TypeHealthy, corev1.ConditionFalse, "")
	for _, c := range all {
		c.registry.setFault(nil)
		if c.policy == corev1.PullNever {
			c.sideload(t, s)
		}
	}
	resolveAgain(t, s, all)
	for _, c := range all {
		s.WaitCondition(t, c.p, v1.TypeSynced, corev1.ConditionTrue, "")
		s.WaitHealthy(t, c.p)
	}
	stop()
}

// checkUnreachable checks that no package is affected by an unreachable registry,
// and that packages that follow a tag report the failure.
func checkUnreachable(t *testing.T, s *testEnv, all []*pullCase, why string) {
	t.Helper()
	for _, c := range all {
		if !c.follows() {
			c.checkUnchanged(t, s, c.first, "while the registry is "+why)
			c.checkNoRequests(t, s, "while the registry is "+why)
			continue
		}
		s.WaitCondition(t, c.p, v1.TypeSynced, corev1.ConditionFalse, why)
		if got := c.p.GetCondition(v1.TypeSynced).Reason; got != v1.ReasonLookupFailed {
			t.Errorf("%s is not synced because of %s", c.name, got)
		}
		c.checkUnchanged(t, s, c.second, "while the registry is "+why)
		if ready := c.p.GetCondition(v1.TypeReady); ready.Status != corev1.ConditionTrue {
			t.Errorf("%s is not ready while the registry is %s: %+v", c.name, why, ready)
		}
	}
}

func resolveAgain(t *testing.T, s *testEnv, all []*pullCase) {
	t.Helper()
	packages := make([]v1.Package, len(all))
	for i, c := range all {
		packages[i] = c.p
	}
	waitReconciled(t, s.Env, packages...)
}

func resetRequests(all []*pullCase) {
	for _, c := range all {
		c.registry.reset()
	}
}
