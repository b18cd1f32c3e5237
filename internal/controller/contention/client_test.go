package contention

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A status without its times is the same state each time that it is restored, and each request of a user to try again
// asks for another one.
func TestRequestsOfUsersAreOtherStates(t *testing.T) {
	state := func(retry, since string) string {
		p := &v1.Provider{}
		p.Status.LastHandledRetry, p.Status.ResolvedDigest = retry, since // Any string can be a time.
		out, err := desiredState(p, statusPart)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const one, two = "2030-01-01T00:00:00.1Z", "2030-01-01T00:00:00.2Z"
	if state(one, "") == state(two, "") {
		t.Error("another request is the same state")
	}
	if state(one, one) != state(one, two) {
		t.Error("another time is another state")
	}
}
