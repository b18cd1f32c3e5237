package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
)

// kubelet simulates the nodes that tests do not have: it reports on pods as the test
// specifies for their images. It also records whether pods of two revisions of a
// package exist at once.
type kubelet struct {
	mu sync.Mutex
	// fails are images, by their digest, whose programs end at once.
	fails map[string]bool
	// alive are the pods of each package, with the revision of each.
	alive map[string]map[string]string
	// together are packages with the revisions that had pods at the same time.
	together map[string]string
}

// startKubelet plays until the test ends. The namespace of the programs exists then.
func startKubelet(t *testing.T, s *testEnv) *kubelet {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}}
	if err := s.client.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	k := &kubelet{fails: map[string]bool{}, alive: map[string]map[string]string{}, together: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := s.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(controller.DefaultNamespace))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				k.observe(p, e.Type == "DELETED")
				if e.Type == "ADDED" {
					k.report(ctx, s.client, p)
				}
			}
		}
	}()
	t.Cleanup(func() {
		w.Stop()
		cancel()
		<-done
	})
	return k
}

// fail makes the program of an image end at once, or run.
func (k *kubelet) fail(digest string, fails bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fails[digest] = fails
}

func (k *kubelet) observe(p *corev1.Pod, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pkg, revision := p.Labels[v1.LabelProvider]+p.Labels[v1.LabelFunction], p.Labels[v1.LabelRevision]
	if gone {
		delete(k.alive[pkg], p.Name)
		return
	}
	if k.alive[pkg] == nil {
		k.alive[pkg] = map[string]string{}
	}
	k.alive[pkg][p.Name] = revision
	for _, other := range k.alive[pkg] {
		if other != revision {
			k.together[pkg] = other + " and " + revision
		}
	}
}

// overlapped are the revisions of a package that had pods at the same time.
func (k *kubelet) overlapped(pkg string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.together[pkg]
}

func (k *kubelet) report(ctx context.Context, c client.Client, p *corev1.Pod) {
	image := p.Spec.Containers[0].Image
	k.mu.Lock()
	fails := k.fails[image[strings.Index(image, "@")+1:]]
	k.mu.Unlock()
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready(corev1.ConditionTrue)}}
	if fails {
		p.Status = crashing(p, 3)
	}
	// Who reads the pod sees whether it was written.
	_ = c.Status().Update(ctx, p)
}

func ready(status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}
}

// crashing returns the status of a pod whose program exited after a number of restarts.
func crashing(p *corev1.Pod, restarts int32) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready(corev1.ConditionFalse)},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: p.Spec.Containers[0].Name, RestartCount: restarts,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"}},
		}},
	}
}

// podOf returns the only pod of a revision.
func podOf(t *testing.T, s *testEnv, revision string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := s.client.List(t.Context(), &pods, client.InNamespace(controller.DefaultNamespace), client.MatchingLabels{v1.LabelRevision: revision}); err != nil {
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
		return s.client.Status().Update(t.Context(), p) == nil
	})
}

// deployments returns the Deployments of a package: the image of each revision that
// has one.
func deployments(t *testing.T, s *testEnv, pkg v1.Package) map[string]string {
	t.Helper()
	var all appsv1.DeploymentList
	if err := s.client.List(t.Context(), &all, client.InNamespace(controller.DefaultNamespace)); err != nil {
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

// activeOf is the name of the active revision.
func activeOf(t *testing.T, s *testEnv, p v1.Package) string {
	t.Helper()
	for _, rev := range revisionsOf(t, s.client, p) {
		if rev.RevisionSpec().DesiredState == v1.RevisionActive {
			return rev.GetName()
		}
	}
	return ""
}
