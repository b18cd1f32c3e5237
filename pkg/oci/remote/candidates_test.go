package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// userList is a keychain with the credentials of several users; "!" is one that cannot be read.
type userList []string

func (l userList) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return FirstCandidate(context.Background(), l, r)
}

func (l userList) Candidates(context.Context, authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	return func(yield func(authn.AuthConfig, error) bool) {
		for _, user := range l {
			auth, err := authn.AuthConfig{Username: user, Password: "secret"}, error(nil)
			if user == "!" {
				auth, err = authn.AuthConfig{}, errors.New("the secret absent does not exist")
			}
			if !yield(auth, err) {
				return
			}
		}
	}
}

// guards are the ways in which a registry accepts one user, and rejects all others.
var guards = map[string]func(t *testing.T, asked *[]string) func(http.ResponseWriter, *http.Request) bool{
	"basic, 401":          basicGuard(http.StatusUnauthorized),
	"basic, 403":          basicGuard(http.StatusForbidden),
	"token, refused":      tokenGuard(false, http.StatusUnauthorized),
	"token, weak and 401": tokenGuard(true, http.StatusUnauthorized),
	"token, weak and 403": tokenGuard(true, http.StatusForbidden),
}

func basicGuard(status int) func(*testing.T, *[]string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ *testing.T, asked *[]string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			user, _, _ := r.BasicAuth()
			if user != "" && (len(*asked) == 0 || (*asked)[len(*asked)-1] != user) {
				*asked = append(*asked, user)
			}
			switch user {
			case "good":
				return false
			case "":
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				w.WriteHeader(status)
			}
			return true
		}
	}
}

func tokenGuard(weak bool, status int) func(*testing.T, *[]string) func(http.ResponseWriter, *http.Request) bool {
	return func(t *testing.T, asked *[]string) func(http.ResponseWriter, *http.Request) bool {
		t.Helper()
		tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, _, _ := r.BasicAuth()
			*asked = append(*asked, user)
			if user != "good" && !weak {
				w.WriteHeader(status)
				return
			}
			_, _ = fmt.Fprintf(w, `{"token":%q}`, user)
		}))
		t.Cleanup(tokens.Close)
		return func(w http.ResponseWriter, r *http.Request) bool {
			switch r.Header.Get("Authorization") {
			case "Bearer good":
				return false
			case "":
				w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				w.WriteHeader(status)
			}
			return true
		}
	}
}

// Each of several credentials is tried in order until the registry accepts one, for reads and writes. Later ones are
// not sent. Those that cannot be read stop nothing, and are named if no other is accepted.
func TestEveryMatchingCredentialIsTried(t *testing.T) {
	for name, guard := range guards {
		for _, list := range []string{
			"good", "good late", "bad good", "bad worse good late", "! good", "bad ! good", "bad bad good", "bad", "bad !", "!",
			"",
		} {
			users := userList(strings.Fields(list))
			target, f := registry.New(registry.Logger(ocitest.Quiet)), ocitest.NewRegistry(t)
			var asked []string
			refuse := guard(t, &asked)
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !refuse(w, r) {
					target.ServeHTTP(w, r)
				} else {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				return true
			}
			r := testRemote(t, func(o *Options) { o.Keychain = FirstKeychain(anonymous{}, users, userList{"late"}) })
			_, pushErr := r.Push(t.Context(), f.Ref("v1"), ocitest.Hello(t))
			readErr := read(t, r, f.Ref("v1"))
			for _, err := range []error{pushErr, readErr} {
				switch {
				case slices.Contains(users, "good"):
					if err != nil {
						t.Errorf("%s, %s: %v", name, list, err)
					}
				default:
					ocitest.WantCode(t, err, ErrUnauthorized)
					if strings.Contains(err.Error(), "absent") != slices.Contains(users, "!") {
						t.Errorf("%s, %s: %v", name, list, err)
					}
				}
			}
			// The next keychain is used if the first one has no credentials.
			if hasNone := list == "" || list == "!"; slices.Contains(asked, "late") != hasNone {
				t.Errorf("%s, %s: sent the credentials of %v", name, list, asked)
			}
		}
	}
}

// Accepted credentials are kept, so that those before them are sent once.
func TestAcceptedCredentialsAreKept(t *testing.T) {
	for name, guard := range guards {
		f := ocitest.NewRegistry(t)
		ref := f.Publish(t, ocitest.Hello(t), "v1")
		var asked []string
		f.Fault = guard(t, &asked)
		r := testRemote(t, func(o *Options) { o.Keychain = userList{"bad", "good"} })
		for range 3 {
			ocitest.Must(t, read(t, r, ref))
		}
		if !slices.Equal(asked, []string{"bad", "good"}) {
			t.Errorf("%s: sent the credentials of %v", name, asked)
		}
	}
}

// Other errors than a rejection do not make the client send further credentials.
func TestBrokenTokenServerEndsTheCredentials(t *testing.T) {
	f, asked := ocitest.NewRegistry(t), 0
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(tokens.Close)
	f.Fault = wantBearer("good", tokens.URL)
	r := testRemote(t, func(o *Options) { o.Keychain = userList{"one", "two"} })
	ocitest.WantCode(
		t, r.Exists(t.Context(), f.Ref("v1").WithDigest(oci.MustParseDigest(ocitest.EmptyDigest))), ErrThrottled,
	)
	if asked != 1 {
		t.Errorf("%d tokens were asked for", asked)
	}
}
