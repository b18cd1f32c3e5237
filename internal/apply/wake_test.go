package apply_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
)

// A real API server leaves a definition half established only when it ends at the
// right moment (test/program does that), so this one is played.
func TestWake(t *testing.T) {
	accepted := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
	}
	half := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "Installing", Message: "first",
	}
	whole := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Reason: "InitialNamesAccepted",
	}
	conflict := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted",
	}
	tests := map[string]struct {
		conditions []apiextensionsv1.CustomResourceDefinitionCondition
		answer     int
		patches    int
		fails      bool
	}{
		"not looked at yet": {nil, http.StatusOK, 0, false},
		"established": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{accepted, whole}, http.StatusOK, 0, false,
		},
		"names in conflict": {[]apiextensionsv1.CustomResourceDefinitionCondition{conflict}, http.StatusOK, 0, false},
		"half established": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{accepted, half}, http.StatusOK, 1, false,
		},
		"changed by somebody else": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{accepted, half}, http.StatusConflict, 1, false,
		},
		"gone meanwhile": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{accepted, half}, http.StatusNotFound, 1, false,
		},
		"server that cannot": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{accepted, half}, http.StatusInternalServerError, 1, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := &apiextensionsv1.CustomResourceDefinition{
				ObjectMeta: metav1.ObjectMeta{Name: "things.wake.test", ResourceVersion: "7"},
				Status:     apiextensionsv1.CustomResourceDefinitionStatus{Conditions: tc.conditions},
			}
			server := &stuckServer{live: live, answer: tc.answer}
			err := newStuck(t, server).Wake(t.Context(), "things.wake.test")
			if (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			if tc.fails && !errors.Is(err, apply.ErrServer) {
				t.Errorf("got %v, want ServerUnavailable", err)
			}
			if len(server.patches) != tc.patches {
				t.Fatalf("%d patches, want %d", len(server.patches), tc.patches)
			}
		})
	}
}

// Waking twice changes something twice, since only a change wakes.
func TestWakeAgain(t *testing.T) {
	half := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "Installing", Message: "first",
	}
	server := &stuckServer{answer: http.StatusOK, live: &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.wake.test", ResourceVersion: "7"},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{half},
		},
	}}
	c := newStuck(t, server)
	for range 3 {
		before := server.live.Status.Conditions[0]
		if err := c.Wake(t.Context(), "things.wake.test"); err != nil {
			t.Fatal(err)
		}
		after := server.patches[len(server.patches)-1]
		if after.ResourceVersion != "7" {
			t.Errorf("the patch is not bound to what was read: %+v", after)
		}
		if after.Status.Conditions[0].Message == before.Message {
			t.Errorf("the patch changes nothing: %q", before.Message)
		}
		before.Message = after.Status.Conditions[0].Message
		if diff := cmp.Diff(before, after.Status.Conditions[0]); diff != "" {
			t.Errorf("the patch changes more than the message:\n%s", diff)
		}
		server.live.Status = after.Status
	}
}

// stuckServer serves one definition, and keeps the patches of its status.
type stuckServer struct {
	live    *apiextensionsv1.CustomResourceDefinition
	answer  int
	patches []apiextensionsv1.CustomResourceDefinition
}

func (s *stuckServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + s.live.Name
	switch {
	case r.Method == http.MethodGet && r.URL.Path == path:
	case r.Method == http.MethodPatch && r.URL.Path == path+"/status":
		body, err := io.ReadAll(r.Body)
		var patch apiextensionsv1.CustomResourceDefinition
		if err != nil || json.Unmarshal(body, &patch) != nil {
			http.Error(w, "cannot read the patch", http.StatusBadRequest)
			return
		}
		s.patches = append(s.patches, patch)
		w.WriteHeader(s.answer)
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(s.live)
}

func newStuck(t *testing.T, s *stuckServer) *apply.Cluster {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := apply.NewCluster(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
