package controller_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
)

// podOf returns the only pod of a revision.
func podOf(t *testing.T, s *testEnv, revision string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := s.Client.List(t.Context(), &pods, client.InNamespace(controller.DefaultNamespace), client.MatchingLabels{
		v1.LabelRevision: revision,
	}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods of %s, want 1", len(pods.Items), revision)
	}
	return &pods.Items[0]
}

// setPodStatus writes the status of the only pod of a revision, as its kubelet would.
func setPodStatus(t *testing.T, s *testEnv, revision string, status func(*corev1.Pod) corev1.PodStatus) {
	t.Helper()
	eventually(t, "the status of the pod of "+revision+" is written", func() bool {
		p := podOf(t, s, revision)
		p.Status = status(p)
		return s.Client.Status().Update(t.Context(), p) == nil
	})
}

// deployments returns the Deployments of a package: the image of each revision that
// has one.
func deployments(t *testing.T, s *testEnv, pkg v1.Package) map[string]string {
	t.Helper()
	var all appsv1.DeploymentList
	if err := s.Client.List(t.Context(), &all, client.InNamespace(controller.DefaultNamespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range all.Items {
		labels := d.Spec.Template.Labels
		if labels[v1.LabelProvider]+labels[v1.LabelFunction] == pkg.GetName() {
			image := d.Spec.Template.Spec.Containers[0].Image
			out[labels[v1.LabelRevision]] = image[strings.Index(image, "@")+1:]
		}
	}
	return out
}

// untilRuns waits until the program of one image, and no other, runs for a package.
func untilRuns(t *testing.T, s *testEnv, p v1.Package, digest string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the runtime %s of %s runs alone", digest, p.GetName()), func() bool {
		all := deployments(t, s, p)
		return len(all) == 1 && all[activeOf(t, s, p)] == digest
	})
}

// activeOf returns the name of the active revision.
func activeOf(t *testing.T, s *testEnv, p v1.Package) string {
	t.Helper()
	for _, rev := range s.Revisions(t, p) {
		if rev.RevisionSpec().DesiredState == v1.RevisionActive {
			return rev.GetName()
		}
	}
	return ""
}
