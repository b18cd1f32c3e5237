package controller_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A second manager in another namespace fails while the first one works, and takes over after its end.
func TestManagersInTwoNamespacesDoNotWorkAtOnce(t *testing.T) {
	first := withExternalRuntimes(t)
	second := openEnv(t, first.Config, filepath.Join(t.TempDir(), "cache"))
	second.options.Runtimes = first.options.Runtimes
	first.options.LeaderElection = &leader.Election{Identity: "first"}
	second.options.LeaderElection = &leader.Election{Identity: "second"}
	second.options.Namespace, second.options.MakeNamespace = "elsewhere", true
	stop := first.start(t)
	o := second.options
	o.Config, o.Content, o.Log = second.Config, env.OpenContent(t, t.TempDir(), fetch.Options{}).
		Source, slog.New(slog.DiscardHandler)
	err := controller.Run(t.Context(), o)
	if !errors.Is(err, leader.ErrAnotherManager) ||
		!strings.Contains(err.Error(), "a manager in the namespace "+controller.DefaultNamespace) {
		t.Fatalf("the second manager ends with %v, want %s", err, leader.ErrAnotherManager.Name)
	}
	if do := errcode.From(err).
		Do; !strings.Contains(do, "kubectl annotate locks.pkg.crossplane.io lock xpkg.dev/manager-namespace-") {
		t.Errorf("the error names no remedy: %s", do)
	}
	stop()
	second.start(t)()
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
	if err := second.Client.Get(t.Context(), client.ObjectKeyFromObject(lock), lock); err != nil {
		t.Fatal(err)
	}
	if got := lock.Annotations["xpkg.dev/manager-namespace"]; got != "elsewhere" {
		t.Errorf("the Lock names the namespace %q", got)
	}
}

// A Lock that was deleted is created again with the claim of the manager.
func TestClaimSurvivesADeletionOfTheLock(t *testing.T) {
	s := withExternalRuntimes(t)
	s.options.LeaderElection = &leader.Election{Identity: "only"}
	stop := s.start(t)
	defer stop()
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
	if err := s.Client.Delete(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Lock names the namespace of the manager", func() bool {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(lock), lock)
		return err == nil && lock.Annotations["xpkg.dev/manager-namespace"] == controller.DefaultNamespace
	})
}
