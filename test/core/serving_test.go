package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// watcher observes a cluster until it is stopped.
type watcher struct {
	mu       sync.Mutex
	problems []string
	rounds   int
	// served is when each package served last, and longest the longest time between two observations in which one served.
	served  map[string]time.Time
	longest time.Duration
}

// watchServing reports each moment in which the Service of a package selects no ready pod, and each failed read of the
// custom resources of a Provider.
func (s *withManager) watchServing(t *testing.T, packages []v1.Package, provider string) *watcher {
	w := &watcher{served: map[string]time.Time{}}
	run(t, func(ctx context.Context) error {
		var found []string
		for _, p := range packages {
			if reason := s.notServing(ctx, p.GetName()); reason != "" {
				found = append(found, reason)
			} else {
				w.observe(p.GetName(), time.Now())
			}
		}
		for i := range 3 {
			if provider == "" {
				break
			}
			list := &unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": provider + ".example.org/v1", "kind": fmt.Sprintf("Thing%dList", i),
			}}
			if err := s.Client.List(ctx, list); err != nil && ctx.Err() == nil {
				found = append(found, "custom resources: "+err.Error())
			} else if err == nil && len(list.Items) == 0 {
				found = append(found, "custom resources are gone")
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rounds++
		if ctx.Err() == nil {
			w.problems = append(w.problems, found...)
		}
		return nil
	})
	return w
}

// observe records that a package serves. A runtime that stopped serving unobserved did so between two observations.
func (w *watcher) observe(name string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.served[name]; ok {
		w.longest = max(w.longest, now.Sub(last))
	}
	w.served[name] = now
}

func (w *watcher) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d observations: no runtime stopped serving for longer than %s", w.rounds, w.longest)
	slices.Sort(w.problems)
	for _, p := range slices.Compact(w.problems) {
		t.Error(p)
	}
	w.problems = nil
}

// notServing returns why the Service of a package has no ready pod, or "". The Service is read before and after the
// pods.
func (s *withManager) notServing(ctx context.Context, name string) string {
	for {
		before, after := &corev1.Service{}, &corev1.Service{}
		pods := &corev1.PodList{}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		err := s.Client.Get(ctx, key, before)
		if err == nil {
			err = s.Client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(before.Spec.Selector))
		}
		if err == nil {
			err = s.Client.Get(ctx, key, after)
		}
		if err != nil {
			return name + ": " + err.Error()
		}
		if slices.ContainsFunc(pods.Items, isServing) {
			return ""
		}
		if before.ResourceVersion == after.ResourceVersion {
			return fmt.Sprintf("%s: no pod with the labels %v is ready", name, before.Spec.Selector)
		}
	}
}

func isServing(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
