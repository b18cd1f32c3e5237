package controller_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/clock"
)

// Packages that follow the same tag share one lookup for each interval.
func TestOneLookUpForManyPackages(t *testing.T) {
	s, lookups := newEnv(t), clock.New()
	s.now = lookups.Now
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/shared:latest", meta("Configuration", "shared", ""))
	r.reset()
	s.start(t)
	var all []v1.Package
	for i := range 8 {
		p := newConfiguration(fmt.Sprintf("lookup-shared-%d", i), ref)
		p.Spec.PackagePullPolicy = corev1.PullAlways
		s.CreateTemporary(t, p)
		all = append(all, p)
	}
	for _, p := range all {
		s.WaitHealthy(t, p)
	}
	for interval := range 3 {
		waitReconciled(t, s.Env, all...)
		if n := len(r.requests("HEAD")); n != interval+1 {
			t.Errorf("8 packages with one tag made %d lookups in %d intervals", n, interval+1)
		}
		lookups.Add(poll)
	}
}

// A throttled registry is requested again after Retry-After, if it is at most ten minutes, and not before.
func TestRetryAfterOfAnInstall(t *testing.T) {
	const retryAfter = 10 * time.Minute
	s, lookups := newEnv(t), clock.New()
	s.now = lookups.Now
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/throttled:v1", meta("Configuration", "throttled", ""))
	r.setFault(answer(http.StatusTooManyRequests, "Retry-After", strconv.Itoa(int(retryAfter.Seconds()))))
	r.reset()
	s.start(t)
	p := newConfiguration("lookup-throttled", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "Throttled")
	before := len(r.requests(""))
	for range 3 {
		waitReconciled(t, s.Env, p)
		lookups.Add(retryAfter / 4)
	}
	if n := len(r.requests("")); n != before {
		t.Errorf("the throttled registry was requested %d times more", n-before)
	}
	r.setFault(nil)
	lookups.Add(retryAfter)
	waitReconciled(t, s.Env, p)
	s.WaitHealthy(t, p)
}

// The guide's example to the letter: a file in the package cache, and not a single
// connection (packages guide, "Pre-Populating the Package Cache").
func TestSideloadedPackage(t *testing.T) {
	s := newEnv(t)
	s.start(t)
	p := newConfiguration("my-cool-pkg", "mycoolpkg")
	p.Spec.PackagePullPolicy = corev1.PullNever
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, `"mycoolpkg" is not in the package cache `+s.folder)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "there is no file mycoolpkg.xpkg")

	file(t, filepath.Join(s.folder, "mycoolpkg.xpkg"), meta("Configuration", "mycoolpkg", ""))
	s.WaitHealthy(t, p)
	if n := s.dials.To(""); n > 0 {
		t.Errorf("%d connections were made", n)
	}

	// The digest stays in use until the spec of the package changes.
	was := p.Status.ResolvedDigest
	file(
		t, filepath.Join(s.folder, "mycoolpkg.xpkg"),
		meta("Configuration", "mycoolpkg", "spec:\n  crossplane: {version: '>=v1'}\n"),
	)
	waitReconciled(t, s.Env, p)
	s.WaitHealthy(t, p)
	if p.Status.ResolvedDigest != was {
		t.Error("a file that was replaced changed what is installed")
	}
}

// The package API takes any name for a package that is never pulled, and references
// alone for all others.
func TestNamesOfPackages(t *testing.T) {
	s := sharedEnv(t)
	for _, c := range []struct {
		image  string
		policy corev1.PullPolicy
		fits   bool
	}{
		{"mycoolpkg", corev1.PullNever, true},
		{"mycoolpkg", corev1.PullIfNotPresent, false},
		{"acme/x:v1", corev1.PullAlways, false},
		{"registry.example.com/acme/x:v1", corev1.PullIfNotPresent, true},
		{"registry.example.com:5000/acme/x:v1", corev1.PullIfNotPresent, true},
		{"registry.example.com/acme/x@sha256:" + strings.Repeat("0", 64), corev1.PullIfNotPresent, true},
		{"registry.example.com/acme/x:v1@sha256:" + strings.Repeat("0", 64), corev1.PullAlways, true},
		{"registry.example.com/acme/x", corev1.PullIfNotPresent, false},
	} {
		p := newConfiguration("lookup-names", c.image)
		p.Spec.PackagePullPolicy = c.policy
		err := s.Client.Create(t.Context(), p, client.DryRunAll)
		if (err == nil) != c.fits {
			t.Errorf("%s with %s: %v", c.image, c.policy, err)
		}
	}
}

func newConfiguration(name, ref string) *v1.Configuration {
	return &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ConfigurationSpec{
		PackageSpec: v1.PackageSpec{Package: ref},
	}}
}
