package transactions

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/operation"
)

// The oldest transactions of commands are deleted when they have ended. Those of users, and those that run, are kept.
func TestOldTransactionsOfCommandsAreDeleted(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ended := func(name string, age int, labels map[string]string) client.Object {
		at := metav1.NewTime(start.Add(-time.Duration(age) * time.Hour))
		return &v1alpha1.Transaction{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Status:     v1alpha1.TransactionStatus{Phase: v1alpha1.Succeeded, CompletionTime: &at},
		}
	}
	command := map[string]string{operation.LabelCommand: "true"}
	objects := []client.Object{
		ended("user", 1000, nil),
		&v1alpha1.Transaction{
			ObjectMeta: metav1.ObjectMeta{Name: "running", Labels: command},
			Status:     v1alpha1.TransactionStatus{Phase: v1alpha1.Applying},
		},
	}
	for i := range kept + 2 {
		objects = append(objects, ended(fmt.Sprintf("command-%03d", i), i, command))
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	r := &Reconciler{Client: cluster, Cache: cluster}
	for range 2 {
		if err := r.prune(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var left v1alpha1.TransactionList
	if err := cluster.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	for _, x := range left.Items {
		if x.Name == "command-100" || x.Name == "command-101" {
			t.Errorf("%s exists", x.Name)
		}
	}
	if len(left.Items) != kept+2 {
		t.Errorf("%d transactions are left", len(left.Items))
	}
}

// Any two transactions have an order, in every state of both, so that they never wait for each other; and the order has
// no cycles.
func TestTheOrderOfTransactionsIsTotal(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var all []*v1alpha1.Transaction
	for _, phase := range []v1alpha1.Phase{
		"", v1alpha1.Waiting, v1alpha1.Planning, v1alpha1.Applying, v1alpha1.Watching, v1alpha1.Returning,
	} {
		for created := range 2 {
			for started := range 3 {
				x := &v1alpha1.Transaction{ObjectMeta: metav1.ObjectMeta{
					Name:              fmt.Sprint(len(all) * 7 % 37),
					CreationTimestamp: metav1.NewTime(now.Add(time.Duration(created) * time.Second)),
				}}
				x.Status.Phase = phase
				if started > 0 {
					x.Status.StartTime = new(metav1.NewTime(now.Add(time.Duration(started) * time.Second)))
				}
				all = append(all, x)
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			if (a != b) != (precedes(a, b) != precedes(b, a)) {
				t.Errorf("%s %v and %s %v have no order", a.Name, a.Status, b.Name, b.Status)
			}
			for _, c := range all {
				if precedes(a, b) && precedes(b, c) && !precedes(a, c) {
					t.Errorf("%s, %s and %s have a cycle", a.Name, b.Name, c.Name)
				}
			}
		}
	}
}
