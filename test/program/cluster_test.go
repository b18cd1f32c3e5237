//go:build unix

package program_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// newClient makes a client of the cluster of a kubeconfig, as a witness that is not
// the program itself.
func newClient(t testing.TB, kubeconfig string) client.WithWatch {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// until waits for a condition, and fails the test with the last state.
func until(t testing.TB, what string, condition func(context.Context) (seen string, ok bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	seen := ""
	for {
		now, ok := condition(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			seen = now
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s; last state: %s", what, seen)
		case <-tick.C:
		}
	}
}

// untilHealthy waits until a provider is healthy, and returns it.
func untilHealthy(t testing.TB, c client.Client, name string) *v1.Provider {
	t.Helper()
	p := &v1.Provider{}
	until(t, "provider "+name+" is healthy", func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		return fmt.Sprintf("%+v", p.Status), h.Status == corev1.ConditionTrue && h.ObservedGeneration == p.Generation
	})
	return p
}

// definitions returns the definitions of an API group; of all groups when it is empty.
func definitions(t testing.TB, c client.Client, group string) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var out []apiextensionsv1.CustomResourceDefinition
	for _, d := range all.Items {
		if group == "" || d.Spec.Group == group {
			out = append(out, d)
		}
	}
	return out
}

func isEstablished(d apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// owners returns the owners of a definition as "Kind/name", with a star for the
// controller.
func owners(d apiextensionsv1.CustomResourceDefinition) string {
	var out []string
	for _, o := range d.OwnerReferences {
		name := o.Kind + "/" + o.Name
		if o.Controller != nil && *o.Controller {
			name += "*"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
