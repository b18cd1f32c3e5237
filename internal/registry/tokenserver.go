package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
)

const (
	tokenPath = "/token"
	// mostScopes is the maximum number of scopes in a request for a token.
	mostScopes = 100
)

// challenge responds with 401 and the address of the token server (CNCF distribution, "Token Authentication").
func (s *Server) challenge(w http.ResponseWriter, r *http.Request, message string) {
	challenge := fmt.Sprintf(`Bearer realm="%s%s",service="%s"`, s.address(r), tokenPath, s.service(r))
	if api, ok := protocol.Parse(r.URL.Path); ok && api.Repository != "" {
		challenge += fmt.Sprintf(`,scope="repository:%s:%s"`, api.Repository, dockerActions(r))
	}
	w.Header().Set("WWW-Authenticate", challenge)
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	protocol.WriteError(w, r, http.StatusUnauthorized, protocol.CodeUnauthorized, message)
}

// dockerActions returns the actions of the scope that a request needs.
func dockerActions(r *http.Request) string {
	switch {
	case r.Method == http.MethodDelete:
		return "delete"
	case protocol.IsRead(r):
		return "pull"
	}
	return "pull,push"
}

// address returns the address at which a client reaches the server: the configured one, or the host of the request.
func (s *Server) address(r *http.Request) string {
	if s.options.URL != "" {
		return s.options.URL
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + safeHost(r.Host)
}

func (s *Server) service(r *http.Request) string {
	_, host, _ := strings.Cut(s.address(r), "://")
	return host
}

// safeHost returns a host that can be part of a quoted string in a header.
func safeHost(host string) string {
	if strings.ContainsFunc(host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-:[]", r))
	}) {
		return "localhost"
	}
	return host
}

// serveToken exchanges credentials for a bearer token that is limited to the requested scopes. It responds with 405 to
// the OAuth2 variant, a POST, after which clients fall back to GET.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	if !protocol.IsRead(r) {
		w.Header().Set("Allow", http.MethodGet)
		protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "get tokens with GET")
		return
	}
	identity, found := s.identifier.login(r)
	if found == wrongCredentials {
		w.Header().Set("WWW-Authenticate", `Basic realm="xpkg"`)
		protocol.WriteError(
			w, r, http.StatusUnauthorized, protocol.CodeUnauthorized,
			"the token is wrong, expired or revoked; `xpkg registry token create --help` shows how to create one",
		)
		return
	}
	requested := r.URL.Query()["scope"]
	if len(requested) > mostScopes {
		protocol.WriteError(
			w, r, http.StatusBadRequest, protocol.CodeDenied, fmt.Sprintf("at most %d scopes are allowed", mostScopes),
		)
		return
	}
	identity.subject = identity.subject.WithRequested(parseScopes(requested))
	bearer, life, err := s.identifier.bearer.issue(identity, bearerLife)
	if err != nil {
		s.log.Error("cannot issue a bearer token", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	protocol.WriteJSON(w, r, http.StatusOK, map[string]any{
		"token": bearer, "access_token": bearer, "expires_in": int(life / time.Second),
		"issued_at": s.now().UTC().Format(time.RFC3339),
	})
}

// shortCatalogScope is the scope of the list of repositories that crane requests.
const shortCatalogScope = "catalog"

// parseScopes returns the scopes of a request, such as "repository:acme/boats:pull,push". It omits scopes that it does
// not understand, so the bearer token does not have them.
func parseScopes(requested []string) []access.Scope {
	scopes := []access.Scope{}
	for line := range strings.SplitSeq(strings.Join(requested, " "), " ") {
		if line == shortCatalogScope {
			line = catalogScope
		}
		kind, rest, _ := strings.Cut(line, ":")
		i := strings.LastIndex(rest, ":")
		if i < 0 {
			continue
		}
		name, actions := rest[:i], strings.Split(rest[i+1:], ",")
		switch {
		case kind == "repository" && access.ValidRepository(name):
			scopes = append(scopes, access.Scope{Repositories: []string{name}, Actions: actionsOf(actions)})
		case kind == "registry" && name == "catalog":
			scopes = append(scopes, access.Scope{Repositories: []string{"*"}, Actions: []access.Action{access.Read}})
		}
	}
	return scopes
}

// actionsOf returns the actions that the actions of Docker's scopes stand for.
func actionsOf(requested []string) []access.Action {
	var actions []access.Action
	for _, a := range requested {
		switch a {
		case "pull":
			actions = append(actions, access.Read)
		case "push":
			actions = append(actions, access.Publish, access.Create, access.Yank)
		case "delete":
			actions = append(actions, access.Delete)
		case "*":
			actions = append(actions, access.Actions()...)
		}
	}
	slices.Sort(actions)
	return slices.Compact(actions)
}
