package deployment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/plan"
)

// recordAnnotation lists, as JSON, what of an object's metadata is ours beside its
// content, so that what is not wanted any more can be told from what others added.
const recordAnnotation = "xpkg.dev/runtime"

// derivation is the version of how objects are written. It changes when the same
// wish is written in another form.
const derivation = "1"

// record are the keys of labels and annotations, and the names of pull secrets, that
// were written last.
type record struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	PullSecrets []string `json:"pullSecrets,omitempty"`
}

func recordOf(m metav1.ObjectMeta, secrets []corev1.LocalObjectReference) record {
	r := record{Labels: slices.Sorted(maps.Keys(m.Labels)), Annotations: slices.Sorted(maps.Keys(m.Annotations))}
	for _, s := range secrets {
		r.PullSecrets = append(r.PullSecrets, s.Name)
	}
	return r
}

func (r record) empty() bool { return len(r.Labels)+len(r.Annotations)+len(r.PullSecrets) == 0 }

// written is what was recorded on an object. What cannot be read was not written by
// us, and so nothing of it is ours.
func written(m metav1.ObjectMeta) record {
	var r record
	if json.Unmarshal([]byte(m.Annotations[recordAnnotation]), &r) != nil {
		return record{}
	}
	return r
}

// wish is what an object is to be, of which the digest is taken.
type wish struct {
	Derivation  string                        `json:"derivation"`
	Labels      map[string]string             `json:"labels,omitempty"`
	Annotations map[string]string             `json:"annotations,omitempty"`
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty"`
	Spec        any                           `json:"spec,omitempty"`
}

func digest(m metav1.ObjectMeta, secrets []corev1.LocalObjectReference, spec any) (string, error) {
	raw, err := json.Marshal(wish{derivation, m.Labels, m.Annotations, secrets, spec})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// metadata is that of an object after it is written: what others added stays, and
// what we wrote and do not want any more goes.
func metadata(live, want metav1.ObjectMeta, owners []metav1.OwnerReference, sum string, now record) metav1.ObjectMeta {
	before := written(live)
	out := *live.DeepCopy()
	out.Name, out.Namespace, out.OwnerReferences, out.ManagedFields = want.Name, want.Namespace, owners, nil
	out.Labels = plan.Merge(live.Labels, before.Labels, want.Labels)
	out.Annotations = plan.Merge(live.Annotations, append(before.Annotations, recordAnnotation), want.Annotations)
	out.Annotations[plan.ContentAnnotation] = sum
	if !now.empty() {
		raw, err := json.Marshal(now)
		if err != nil {
			// Lists of strings always marshal.
			panic(err)
		}
		out.Annotations[recordAnnotation] = string(raw)
	}
	return out
}

// holds reports whether all of want is in live.
func holds(live, want map[string]string) bool {
	for k, v := range want {
		if is, ok := live[k]; !ok || is != v {
			return false
		}
	}
	return true
}
