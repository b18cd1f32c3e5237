package apply

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// No managed fields of a server make a plan fail.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		`{"f:metadata":{"f:labels":{".":{},"f:a":{}},"f:annotations":{"f:b":{}}},"f:spec":{}}`, `{"f:status":{}}`,
		`{"f:metadata":[]}`, `[]`, `null`, `1`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // The client library has read the page by then.
		}
		var got fields
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(got.labels) || !slices.IsSorted(got.annotations) {
			t.Errorf("not in order: %+v", got)
		}
	})
}

// For any Retry-After header, the stated pause is not negative.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"1", "-1", "99999999999", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		now := time.Unix(1_000_000, 0)
		after, told := heard{retryAfter: header}.after(now)
		if after < 0 || !told && after != 0 {
			t.Errorf("%q: %s, %v", header, after, told)
		}
	})
}
