package deployment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// recordAnnotation lists, as JSON, the managed metadata of an object, so that obsolete
// entries can be distinguished from additions by others.
const recordAnnotation = "xpkg.dev/runtime"

// derivation is the version of the code that derives objects. It must change if the same desired
// state is written in another form.
const derivation = "1"

// record holds the keys of the labels and annotations, and the names of the pull secrets, that were
// written last, and the ServiceAccount of that time.
type record struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Account is the ServiceAccount that existed at the last write of a Deployment.
	Account types.UID `json:"account,omitempty"`
}

func recordOf(m metav1.ObjectMeta, secrets []corev1.LocalObjectReference) record {
	r := record{Labels: slices.Sorted(maps.Keys(m.Labels)), Annotations: slices.Sorted(maps.Keys(m.Annotations))}
	for _, s := range secrets {
		r.PullSecrets = append(r.PullSecrets, s.Name)
	}
	return r
}

func (r record) empty() bool {
	return len(r.Labels)+len(r.Annotations)+len(r.PullSecrets)+len(r.Account) == 0
}

// lastRecord returns the record of an object. An unreadable record counts as empty: the
// manager did not write it.
func lastRecord(m metav1.ObjectMeta) record {
	var r record
	if json.Unmarshal([]byte(m.Annotations[recordAnnotation]), &r) != nil {
		return record{}
	}
	return r
}

// desiredState is the desired state of an object from which the digest is computed.
type desiredState struct {
	Derivation  string                        `json:"derivation"`
	Labels      map[string]string             `json:"labels,omitempty"`
	Annotations map[string]string             `json:"annotations,omitempty"`
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty"`
	Spec        any                           `json:"spec,omitempty"`
}

func digest(m metav1.ObjectMeta, secrets []corev1.LocalObjectReference, spec any) (string, error) {
	raw, err := json.Marshal(desiredState{derivation, m.Labels, m.Annotations, secrets, spec})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// metadata returns the metadata of an object after the write. It keeps additions by
// others and removes managed entries that are no longer wanted.
func metadata(live, want metav1.ObjectMeta, owners []metav1.OwnerReference, sum string, now record) metav1.ObjectMeta {
	before := lastRecord(live)
	out := *live.DeepCopy()
	out.Name, out.Namespace, out.OwnerReferences, out.ManagedFields = want.Name, want.Namespace, owners, nil
	out.Labels = plan.Merge(live.Labels, before.Labels, want.Labels)
	out.Annotations = plan.Merge(live.Annotations, append(before.Annotations, recordAnnotation), want.Annotations)
	out.Annotations[plan.ContentDigestAnnotation] = sum
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

// containsAll reports whether live contains all entries of want.
func containsAll(live, want map[string]string) bool {
	for k, v := range want {
		if is, ok := live[k]; !ok || is != v {
			return false
		}
	}
	return true
}
