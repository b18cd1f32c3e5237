package registry_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestSimilarNamesAtTheSameTime creates repositories with similar names at the same time through one server, and
// through several servers in front of one registry. The content of a push without a manifest takes no name.
func TestSimilarNamesAtTheSameTime(t *testing.T) {
	for name, servers := range map[string]func(t *testing.T) []*server{
		"folder": func(t *testing.T) []*server {
			t.Helper()
			s := start(t, nil)
			return []*server{s, s, s}
		},
		"docker-registry": func(t *testing.T) []*server {
			t.Helper()
			mortals, _, _ := startMortals(t, 3)
			return []*server{mortals[0].server, mortals[1].server, mortals[2].server}
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := servers(t)
			for round := range 5 {
				var names []string
				for _, separator := range []string{"-", "_", "."} {
					names = append(names, fmt.Sprintf("acme/boats%sx%d", separator, round))
				}
				for i, s := range all {
					content := "blob"
					started := s.do(t, http.MethodPost, "/v2/"+names[i]+"/blobs/uploads/", s.admin, nil)
					target := strings.TrimPrefix(started.Header.Get("Location"), "http://"+host)
					separator := "?"
					if strings.Contains(target, "?") {
						separator = "&"
					}
					ended := s.do(t, http.MethodPut, target+separator+"digest="+
						oci.DigestOf([]byte(content)).String(), s.admin, strings.NewReader(content))
					if started.StatusCode != http.StatusAccepted || ended.StatusCode != http.StatusCreated {
						t.Fatalf("an upload to %s: status %d, %d", names[i], started.StatusCode, ended.StatusCode)
					}
				}
				statuses := make([]int, len(all))
				var pushes sync.WaitGroup
				for i, s := range all {
					pushes.Go(func() { statuses[i] = pushAgain(t, s, names[i], "v1.0.0", names[i]) })
				}
				pushes.Wait()
				created := 0
				for i, s := range all {
					next := pushAgain(t, s, names[i], "v1.1.0", "next")
					if next != statuses[i] || next != http.StatusCreated && next != http.StatusConflict {
						t.Errorf("the push of a later version to %s: status %d, after %v", names[i], next, statuses)
					}
					if statuses[i] == http.StatusCreated {
						created++
					}
				}
				if created != 1 {
					t.Errorf("the pushes to %q: %v", names, statuses)
				}
			}
		})
	}
}

// pushAgain pushes a manifest and returns the status. It repeats the push while the backend is not available, as
// clients do.
func pushAgain(t *testing.T, s *server, repository, tag, content string) int {
	const attempts = 20
	status := 0
	for range attempts {
		if status = s.pushManifest(t.Context(), repository, tag, content); status != http.StatusServiceUnavailable {
			break
		}
	}
	return status
}
