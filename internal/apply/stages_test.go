package apply_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// inStages returns a plan with objects of three ranks.
func inStages() plan.Plan {
	create := func(api, kind, name string) plan.Change {
		return plan.Change{Action: plan.Create, Ref: plan.Ref{APIVersion: api, Kind: kind, Name: name}}
	}
	return plan.Plan{Changes: []plan.Change{
		create("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a"),
		create("apiextensions.k8s.io/v1", "CustomResourceDefinition", "b"),
		create("apiextensions.crossplane.io/v1", "Composition", "c"),
		create("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "d"),
	}}
}

// A stage begins when the one before it is done.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var underWay []string
		c, server := play(t, func(r *http.Request) (*http.Response, error) {
			kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			mu.Lock()
			for _, other := range underWay {
				if other != kind {
					t.Errorf("%s and %s are written at once", other, kind)
				}
			}
			underWay = append(underWay, kind)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			underWay = underWay[1:]
			mu.Unlock()
			return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
		})
		began := time.Now()
		written, err := c.Run(t.Context(), inStages(), always([]byte("{}")))
		if err != nil || len(written) != 4 || time.Since(began) != 3*time.Second {
			t.Errorf("%d written in %s: %v", len(written), time.Since(began), err)
		}
		if last := server.calls[3]; !strings.HasSuffix(last, "/validatingwebhookconfigurations") {
			t.Errorf("webhooks come last: %v", server.calls)
		}
	})
}

// After the failure of a stage, the writes that were made are returned, and the
// next stage does not start.
func TestStagesEndWithAFailure(t *testing.T) {
	c, server := play(t, func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/compositions") {
			return statusReply(422, metav1.StatusReasonInvalid)(r)
		}
		return holdsObject(metav1.ObjectMeta{UID: "u", Generation: 2})(r)
	})
	written, err := c.Run(t.Context(), inStages(), always([]byte("{}")))
	if !errors.Is(err, apply.ErrRejected) || !strings.HasPrefix(err.Error(), "create Composition c: ") {
		t.Errorf("got %v", err)
	}
	if len(written) != 2 || len(server.calls) != 3 || written[definition("a")] != (plan.Written{UID: "u", Generation: 2}) {
		t.Errorf("written %v with %v", written, server.calls)
	}
}
