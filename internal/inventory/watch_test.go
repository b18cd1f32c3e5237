package inventory

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

func providerNamed(name string) *v1.Provider {
	p := &v1.Provider{}
	p.Name, p.Spec.Package = name, "registry.example.org/"+name+":v1"
	return p
}

// Each change of a row is sent once: a package that exists, changes of it, its deletion, and packages that were created
// or deleted while the API server had ended the watch.
func TestWatchSendsEveryChange(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	watches := make(chan *apiwatch.FakeWatcher)
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(providerNamed("first")).
		WithInterceptorFuncs(interceptor.Funcs{
			Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (apiwatch.Interface, error) {
				return <-watches, nil
			},
		}).Build()
	w := &Watch{Cluster: cluster, Kind: v1.GroupVersion.WithKind(v1.ProviderKind), Selector: labels.Everything()}
	all, err := w.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Object.GetName() != "first" || all[0].Deleted {
		t.Fatalf("%+v, %v", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	events, done := make(chan Event), make(chan error, 1)
	go func() { done <- w.Run(ctx, events) }()
	expect := func(name string, deleted bool) {
		t.Helper()
		if e := <-events; e.Object.GetName() != name || e.Deleted != deleted {
			t.Errorf("got %s (deleted: %t), want %s (deleted: %t)", e.Object.GetName(), e.Deleted, name, deleted)
		}
	}
	current := apiwatch.NewFakeWithChanSize(10, false)
	watches <- current
	current.Add(providerNamed("second"))
	expect("second", false)
	current.Modify(providerNamed("second"))
	expect("second", false)
	current.Delete(providerNamed("second"))
	expect("second", true)
	current.Add(providerNamed("third"))
	expect("third", false)

	// The API server ends the watch, and the third package is deleted meanwhile: the packages are listed again.
	current.Stop()
	expect("first", false)
	expect("third", true)
	current = apiwatch.NewFakeWithChanSize(10, false)
	watches <- current
	current.Add(providerNamed("fourth"))
	expect("fourth", false)

	// The version of the list is too old: the packages are listed again after a wait.
	current.Error(&metav1.Status{Code: 410})
	expect("first", false)
	expect("fourth", true)
	// The end of the context ends a watch.
	cancel()
	current = apiwatch.NewFake()
	current.Stop()
	watches <- current
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A package that was deleted while no watch ran is reported by the next list.
func TestWatchReportsPackagesThatWereDeletedMeanwhile(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).Build()
	w := &Watch{
		Cluster: cluster, Kind: v1.GroupVersion.WithKind(v1.ProviderKind), Selector: labels.Everything(),
		known: map[client.ObjectKey]Object{{Name: "gone"}: providerNamed("gone")},
	}
	all, err := w.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Object.GetName() != "gone" || !all[0].Deleted || len(w.known) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A package that has lost the selected labels is not reported as deleted, by a watch and by a list.
func TestWatchDistinguishesUnselectedFromDeletedPackages(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	selector := labels.SelectorFromSet(labels.Set{"team": "ships"})
	current := apiwatch.NewFakeWithChanSize(3, false)
	live, replaced := providerNamed("live"), providerNamed("replaced")
	live.UID, replaced.UID = "1", "new"
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live, replaced).
		WithInterceptorFuncs(interceptor.Funcs{
			Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (apiwatch.Interface, error) {
				return current, nil
			},
		}).Build()
	labeled := func(name, uid string) *v1.Provider {
		p := providerNamed(name)
		p.UID, p.Labels = types.UID(uid), map[string]string{"team": "ships"}
		return p
	}
	former := []*v1.Provider{labeled("live", "1"), labeled("replaced", "old"), labeled("gone", "3")}
	w := &Watch{
		Cluster: cluster, Kind: v1.GroupVersion.WithKind(v1.ProviderKind), Selector: selector,
		known: map[client.ObjectKey]Object{},
	}
	for _, p := range former {
		w.known[client.ObjectKeyFromObject(p)] = p
		current.Delete(p)
	}
	current.Stop()
	check := func(e Event) {
		t.Helper()
		name := e.Object.GetName()
		if e.Unselected != (name == "live") || e.Deleted == e.Unselected || e.Unselected && e.Object.GetLabels() != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	all, err := w.List(t.Context())
	if err != nil || len(all) != len(former) || len(w.known) > 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, e := range all {
		check(e)
	}
	events := make(chan Event, len(former))
	if err := w.follow(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	for range former {
		check(<-events)
	}
}
