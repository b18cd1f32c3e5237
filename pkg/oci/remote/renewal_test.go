package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// candidates is a keychain whose credentials can change.
type candidates func(yield func(authn.AuthConfig, error) bool)

func (c candidates) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return FirstCandidate(context.Background(), c, r)
}

func (c candidates) Candidates(context.Context, authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	return iter.Seq2[authn.AuthConfig, error](c)
}

// Credentials that expire are replaced with those that the keychain then has, whether the registry responds to the old
// ones with 401 or 403. The same ones are not sent again.
func TestCredentialsThatExpireAreReplaced(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		f := ocitest.NewRegistry(t)
		ref := f.Publish(t, ocitest.Hello(t), "v1")
		valid, current, requests := "first", "first", 0
		f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			requests++
			user, _, _ := r.BasicAuth()
			switch user {
			case valid:
				return false
			case "":
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				w.WriteHeader(status)
			}
			return true
		}
		r := testRemote(t, func(o *Options) {
			o.Keychain = candidates(func(yield func(authn.AuthConfig, error) bool) {
				yield(authn.AuthConfig{Username: current, Password: "x"}, nil)
			})
		})
		ocitest.Must(t, read(t, r, ref))
		valid = "second"
		_, err := r.Resolve(t.Context(), ref)
		ocitest.WantCode(t, err, ErrUnauthorized)
		current = "second"
		for range 2 {
			requests = 0
			if _, err := r.Resolve(t.Context(), ref); err != nil {
				t.Errorf("%d: %v", status, err)
			}
		}
		if requests != 1 {
			t.Errorf("%d: accepted credentials needed %d requests", status, requests)
		}
	}
}

// Anonymous credentials after others read what is public if the registry refuses the others. Otherwise the advice still
// states that credentials were sent.
func TestAnonymousAfterOtherCredentials(t *testing.T) {
	for name, token := range map[string]func(authenticated bool) string{
		"public":          func(authenticated bool) string { return map[bool]string{false: "good"}[authenticated] },
		"private":         func(bool) string { return "" },
		"private, weakly": func(bool) string { return "weak" },
	} {
		f := ocitest.NewRegistry(t)
		ref := f.Publish(t, ocitest.Hello(t), "v1")
		tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _, authenticated := r.BasicAuth()
			if token(authenticated) == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = fmt.Fprintf(w, `{"token":%q}`, token(authenticated))
		}))
		t.Cleanup(tokens.Close)
		f.Fault = wantBearer("good", tokens.URL)
		r := testRemote(t, func(o *Options) {
			o.Keychain = FirstKeychain(anonymous{}, candidates(func(yield func(authn.AuthConfig, error) bool) {
				_ = yield(authn.AuthConfig{Username: "me", Password: "x"}, nil) && yield(authn.AuthConfig{}, nil)
			}))
		})
		err := read(t, r, ref)
		if (err == nil) != (name == "public") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(errcode.From(err).Do, "No credentials were sent") {
			t.Errorf("%s: got the advice %q", name, errcode.From(err).Do)
		}
	}
}

// The advice of credentials that cannot be read is part of the advice for a denied access.
func TestAdviceOfCredentialsThatCannotBeRead(t *testing.T) {
	code := errcode.Code{Name: "Test", Class: errcode.NotFound, Fix: "Create it."}
	for want, unread := range map[string]error{
		"Create it. No credentials were sent. Check ": code.New(nil, "absent"),
		"No credentials were sent. Check ":            errors.New("absent"),
	} {
		f := ocitest.NewRegistry(t)
		f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		r := testRemote(t, func(o *Options) {
			o.Keychain = candidates(func(yield func(authn.AuthConfig, error) bool) { yield(authn.AuthConfig{}, unread) })
		})
		_, err := r.Resolve(t.Context(), f.Ref("v1"))
		ocitest.WantCode(t, err, ErrUnauthorized)
		if got := errcode.From(err); !strings.HasPrefix(got.Do, want) || !strings.Contains(got.Error(), "absent") {
			t.Errorf("%v: %q, want %q", got, got.Do, want)
		}
	}
}
