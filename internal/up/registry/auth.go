package registry

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

const (
	pingPath  = "/v2/"
	tokenPath = "/token"
	// anonymousToken is the bearer token of clients without credentials. It allows
	// the ping; reads need no token, and writes refuse it.
	anonymousToken = "anonymous"
	// tokenLife is the lifetime of a bearer token in seconds. Clients then request
	// another one, so that a changed token takes effect.
	tokenLife = 300
)

// The error codes of the OCI distribution specification that this package uses.
const (
	codeUnauthorized = "UNAUTHORIZED"
	codeDenied       = "DENIED"
)

// authorize admits reads of content, and writes with the token. It responds to the ping of clients
// and serves bearer tokens.
func authorize(o Options, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		access := o.accessOf(r)
		switch {
		case r.URL.Path == tokenPath:
			o.serveToken(w, r, access)
		case isPing(r) && access == noCredentials:
			o.challenge(w, r, "log in, or get an anonymous token from "+tokenPath)
		case isPing(r) && access == wrongCredentials:
			o.challenge(w, r, o.wrongToken())
		case isRead(r), access == writeAccess:
			next.ServeHTTP(w, r)
		case access == wrongCredentials:
			o.challenge(w, r, o.wrongToken())
		default:
			o.challenge(w, r, fmt.Sprintf("pushes and deletes need the token of this control plane; run `%s`", o.Login))
		}
	})
}

func (o Options) wrongToken() string {
	return fmt.Sprintf("the credentials do not belong to this control plane; run `%s`", o.Login)
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func isPing(r *http.Request) bool {
	return isRead(r) && strings.TrimSuffix(r.URL.Path, "/") == strings.TrimSuffix(pingPath, "/")
}

// access is the level of access of a request by its credentials.
type access int

const (
	noCredentials access = iota
	// readAccess is the access of a client with the anonymous token.
	readAccess
	writeAccess
	wrongCredentials
)

// accessOf returns the access of a request by its Authorization header. Basic credentials without a
// password count as no credentials, because skopeo sends them if it has none.
func (o Options) accessOf(r *http.Request) access {
	if _, password, ok := r.BasicAuth(); ok {
		return o.accessWith(password)
	}
	header := r.Header.Get("Authorization")
	scheme, token, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return noCredentials
	case !strings.EqualFold(scheme, "Bearer"):
		return wrongCredentials
	case token == anonymousToken:
		return readAccess
	}
	return o.accessWith(token)
}

func (o Options) accessWith(secret string) access {
	// The digests have the same length, so the comparison always takes the same time.
	got, want := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(o.Token))
	switch {
	case secret == "":
		return noCredentials
	case o.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1:
		return writeAccess
	}
	return wrongCredentials
}

// challenge responds with 401 and the address of the token server. The address contains the host of
// the request, which guard has checked to be a loopback address.
func (o Options) challenge(w http.ResponseWriter, r *http.Request, message string) {
	challenge := fmt.Sprintf(`Bearer realm="http://%s%s",service="%s"`, r.Host, tokenPath, r.Host)
	if name, ok := repositoryOf(r.URL.Path); ok {
		challenge += fmt.Sprintf(`,scope="repository:%s:pull,push"`, name)
	}
	w.Header().Set("WWW-Authenticate", challenge)
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	writeError(w, http.StatusUnauthorized, codeUnauthorized, message)
}

// repositoryOf returns the repository in a path of the API, and false if there is none.
func repositoryOf(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, pingPath)
	if !ok {
		return "", false
	}
	for _, part := range []string{"/blobs/", "/manifests/", "/referrers/", "/tags/"} {
		if i := strings.LastIndex(rest, part); i > 0 && !strings.ContainsAny(rest[:i], `"\,`) {
			return rest[:i], true
		}
	}
	return "", false
}

// serveToken exchanges the token of the control plane for a bearer token, as CNCF distribution
// specifies it ("Token Authentication"). It responds with 405 to the OAuth2 variant, a POST, after
// which clients fall back to GET.
func (o Options) serveToken(w http.ResponseWriter, r *http.Request, a access) {
	if !isRead(r) {
		w.Header().Set("Allow", http.MethodGet)
		writeError(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "get tokens with GET")
		return
	}
	token := anonymousToken
	switch a {
	case writeAccess:
		token = o.Token
	case wrongCredentials:
		w.Header().Set("WWW-Authenticate", `Basic realm="xpkg"`)
		writeError(w, http.StatusUnauthorized, codeUnauthorized, o.wrongToken())
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, map[string]any{"token": token, "access_token": token, "expires_in": tokenLife})
}

// writeError writes a response with an error of the OCI distribution specification.
func writeError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // An error means that the client has disconnected.
}
