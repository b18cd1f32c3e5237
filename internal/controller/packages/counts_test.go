package packages

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// counter is a Counter with fixed numbers. It records the CRDs that are counted.
type counter struct {
	numbers map[string]int64
	mu      sync.Mutex
	asked   []string
}

func (c *counter) CustomResources(_ context.Context, crds []string, _ bool) ([]planner.CustomResources, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, crds...)
	switch n, ok := c.numbers[crds[0]]; {
	case !ok:
		return nil, errors.New("the API server is away")
	case n < 0:
		return []planner.CustomResources{{CRD: crds[0], Unknown: "they may not be listed"}}, nil
	case n > 0:
		return []planner.CustomResources{{CRD: crds[0], Count: n}}, nil
	}
	return nil, nil
}

// Only the kinds of healthy packages whose runtime runs are counted. A number is reported when it changes, and only if
// all kinds of the package could be counted.
func TestCountsAreThoseOfRunningPackages(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err == nil {
		err = apiextensionsv1.AddToScheme(scheme)
	}
	if err != nil {
		t.Fatal(err)
	}
	provider := func(name string, counted *int64, c v1.Condition) *v1.Provider {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		p.Status.CustomResources = counted
		p.SetConditions(metav1.Now(), c)
		return p
	}
	definition := func(name string, owner metav1.OwnerReference) client.Object {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}}}
		o.SetGroupVersionKind(definitionKind)
		return o
	}
	of := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: name, UID: types.UID(name)}
	}
	ready, five := v1.Condition{Type: v1.TypeReady, Status: "True"}, int64(5)
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		provider("new", nil, ready), provider("same", &five, ready), provider("secret", nil, ready), provider("away", nil, ready),
		provider("external", nil, ready), provider("failed", nil, v1.Condition{Type: v1.TypeReady, Status: "False"}),
		definition("as.new.test", of("new")), definition("bs.new.test", of("new")), definition("as.same.test", of("same")),
		definition("as.secret.test", of("secret")), definition("as.away.test", of("away")),
		definition("as.external.test", of("external")), definition("as.failed.test", of("failed")),
	).Build()
	c := &counter{numbers: map[string]int64{
		"as.new.test": 3, "bs.new.test": 4, "as.same.test": 5, "as.secret.test": -1, "as.external.test": 1, "as.failed.test": 1,
	}}
	counts := NewCounts(cluster, c, func(name string) bool { return name != "external" }, time.Microsecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reported := make(chan client.Object)
	go func() {
		for {
			select {
			case e := <-counts.changes[v1.ProviderKind]:
				reported <- e.Object
			case <-ctx.Done():
				return
			}
		}
	}()
	ended := make(chan error)
	go func() { ended <- counts.round(ctx) }()
	if o := <-reported; o.GetName() != "new" {
		t.Errorf("%s is reported", o.GetName())
	}
	select {
	case o := <-reported:
		t.Errorf("%s is reported", o.GetName())
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	}
	slices.Sort(c.asked)
	if want := []string{"as.away.test", "as.new.test", "as.same.test", "as.secret.test", "bs.new.test"}; !slices.Equal(c.asked, want) {
		t.Errorf("counted are %v, want %v", c.asked, want)
	}
	for name, want := range map[string]int64{"new": 7, "same": 5, "secret": -1, "away": -1, "external": -1, "failed": -1} {
		p := provider(name, nil, ready)
		counts.set(p)
		if got := p.Status.CustomResources; want < 0 && got != nil || want >= 0 && (got == nil || *got != want) {
			t.Errorf("%s has %v, want %d", name, got, want)
		}
	}
}
