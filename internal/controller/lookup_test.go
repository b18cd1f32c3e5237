package controller_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Packages that follow the same tag share one look-up for each interval.
func TestOneLookUpForManyPackages(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/shared:latest", meta("Configuration", "shared", ""))
	var all []v1.Package
	for i := range 8 {
		p := newConfiguration(fmt.Sprintf("lookup-shared-%d", i), ref)
		p.Spec.PackagePullPolicy = corev1.PullAlways
		create(t, s.client, p)
		all = append(all, p)
	}
	for _, p := range all {
		untilHealthy(t, s.client, p)
	}
	r.reset()
	begin := time.Now()
	const intervals = 3
	eventually(t, "several intervals are over", func() bool { return len(r.requests("HEAD")) >= intervals })
	// An answer is shared until it is as old as half an interval.
	if most, n := int(time.Since(begin)/(poll/2))+1, len(r.requests("HEAD")); n > most {
		t.Errorf("8 packages with one tag made %d look-ups in %s, want at most %d", n, time.Since(begin), most)
	}
}

// A throttled registry is requested again after Retry-After and not before.
func TestRetryAfterOfAnInstall(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/throttled:v1", meta("Configuration", "throttled", ""))
	var mu sync.Mutex
	var times []time.Time
	const pause = 3 * time.Second
	r.setFault(func(w http.ResponseWriter, req *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
		if len(times) > 1 {
			return false
		}
		return answer(http.StatusTooManyRequests, "Retry-After", "3")(w, req)
	})
	p := newConfiguration("lookup-throttled", ref)
	create(t, s.client, p)
	untilCondition(t, s.client, p, v1.TypeInstalled, corev1.ConditionFalse, "Throttled")
	waitReconciled(t, s.client, p)
	untilHealthy(t, s.client, p)
	mu.Lock()
	defer mu.Unlock()
	if waited := times[1].Sub(times[0]); waited < pause-time.Second/2 {
		t.Errorf("the registry was asked again after %s, and wanted %s", waited, pause)
	}
}

// The guide's example to the letter: a file in the package cache, and not a single
// connection (packages guide, "Pre-Populating the Package Cache").
func TestSideloadedPackage(t *testing.T) {
	s := newEnv(t)
	s.start(t)
	p := newConfiguration("my-cool-pkg", "mycoolpkg")
	p.Spec.PackagePullPolicy = corev1.PullNever
	create(t, s.client, p)
	untilCondition(t, s.client, p, v1.TypeInstalled, corev1.ConditionFalse, `"mycoolpkg" is not in the package cache `+s.folder)
	untilCondition(t, s.client, p, v1.TypeHealthy, corev1.ConditionFalse, "there is no file mycoolpkg.xpkg")

	file(t, filepath.Join(s.folder, "mycoolpkg.xpkg"), meta("Configuration", "mycoolpkg", ""))
	untilHealthy(t, s.client, p)
	if n := s.dials.to(""); n > 0 {
		t.Errorf("%d connections were made", n)
	}

	// The digest stays in use until the spec of the package changes.
	was := p.Status.ResolvedDigest
	file(t, filepath.Join(s.folder, "mycoolpkg.xpkg"), meta("Configuration", "mycoolpkg", "spec:\n  crossplane: {version: '>=v1'}\n"))
	waitReconciled(t, s.client, p)
	untilHealthy(t, s.client, p)
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
		err := s.client.Create(t.Context(), p, client.DryRunAll)
		if (err == nil) != c.fits {
			t.Errorf("%s with %s: %v", c.image, c.policy, err)
		}
	}
}

func newConfiguration(name, ref string) *v1.Configuration {
	return &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ConfigurationSpec{PackageSpec: v1.PackageSpec{Package: ref}}}
}
