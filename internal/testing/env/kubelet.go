package env

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Kubelet simulates nodes: it writes the status of pods as the test specifies for their images. It
// also records whether pods of two revisions of a package exist at the same time.
type Kubelet struct {
	mu sync.Mutex
	// fails contains the digests of images whose runtimes exit at once.
	fails map[string]bool
	// logs contains what these write before, by digest.
	logs map[string]string
	// alive contains the revision of each pod, by package and pod.
	alive map[string]map[string]string
	// together contains the revisions that had pods at the same time, by package.
	together map[string]string
}

// StartKubelet creates a namespace if it does not exist, and makes its pods ready until the test
// ends.
func (e *Env) StartKubelet(t testing.TB, namespace string) *Kubelet {
	t.Helper()
	e.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	k := &Kubelet{fails: map[string]bool{}, logs: map[string]string{}, alive: map[string]map[string]string{}, together: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := e.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if p, ok := event.Object.(*corev1.Pod); ok {
				k.observe(p, event.Type == "DELETED")
				if event.Type == "ADDED" {
					k.report(ctx, e.Client, p)
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

// Fail sets whether new pods of an image exit at once.
func (k *Kubelet) Fail(digest string, fails bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fails[digest] = fails
}

// FailWith makes new pods of an image exit at once, after they have written a log.
func (k *Kubelet) FailWith(digest, log string) {
	k.Fail(digest, true)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logs[digest] = log
}

func (k *Kubelet) observe(p *corev1.Pod, gone bool) {
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

// Overlapped returns the revisions of a package that had pods at the same time, or "".
func (k *Kubelet) Overlapped(pkg string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.together[pkg]
}

func (k *Kubelet) report(ctx context.Context, c client.Client, p *corev1.Pod) {
	image := p.Spec.Containers[0].Image
	k.mu.Lock()
	digest := image[strings.Index(image, "@")+1:]
	fails, log := k.fails[digest], k.logs[digest]
	k.mu.Unlock()
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		PodReady(corev1.ConditionTrue),
	}}
	if fails {
		p.Status = CrashingPod(p, 3)
		if p.Spec.Containers[0].TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message = log
		}
	}
	// An error is ignored: a test that needs the status waits for it.
	_ = c.Status().Update(ctx, p)
}

// PodReady returns the Ready condition of a pod.
func PodReady(status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}
}

// CrashingPod returns the status of a pod whose runtime exited after a number of restarts.
func CrashingPod(p *corev1.Pod, restarts int32) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{PodReady(corev1.ConditionFalse)},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: p.Spec.Containers[0].Name, RestartCount: restarts,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "CrashLoopBackOff", Message: "back-off",
			}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 7, Reason: "Error",
			}},
		}},
	}
}
