package registry

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// serveDistribution serves the OCI distribution API: it forwards the requests that the policy allows to the images.
func (s *Server) serveDistribution(w http.ResponseWriter, r *http.Request) {
	isolate(w.Header())
	if b, ok := s.images.(*backend); ok && b.isOwn(r) {
		s.log.Error(
			"the registry behind this server is the server itself, or forwards requests to it; start the server with the host of another registry",
			"backend", b.host,
		)
		protocol.WriteError(
			w, r, http.StatusLoopDetected, protocol.CodeUnsupported, "the registry behind this server is the server itself",
		)
		return
	}
	api, ok := protocol.Parse(r.URL.Path)
	if !ok {
		protocol.WriteError(w, r, http.StatusNotFound, protocol.CodeNameInvalid, "the path does not name a repository")
		return
	}
	subject, found := s.identifier.subject(r)
	switch {
	case found == wrongCredentials:
		s.challenge(w, r, "the credentials are wrong or have expired")
	case api.Endpoint == protocol.Ping && found == noCredentials:
		s.challenge(w, r, "log in, or get an anonymous token from "+tokenPath)
	case api.Endpoint == protocol.Ping:
		protocol.WriteJSON(w, r, http.StatusOK, struct{}{})
	case api.Endpoint == protocol.Repositories:
		s.listRepositories(w, r, subject)
	case protocol.IsRead(r) && api.Endpoint != protocol.Upload:
		s.read(w, r, api, subject, found)
	default:
		s.write(w, r, api, subject, found)
	}
}

// isolate makes browsers run nothing in a response: publishers push the content, a registry behind the server selects
// its type, and the pages, for which the browser keeps a token, have the same origin.
func isolate(header http.Header) {
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
}

// read serves a read. A repository that the subject may not read has the responses of a repository that does not exist.
// A client without credentials gets a challenge in both cases.
func (s *Server) read(
	w http.ResponseWriter, r *http.Request, api protocol.Request, subject access.Subject, found credentials,
) {
	policy := s.policy()
	allowed := policy.May(subject, api.Repository, access.Read)
	if !allowed && policy.May(subject.WithoutRequested(), api.Repository, access.Read) {
		s.challenge(w, r, "the bearer token is for another repository")
		return
	}
	asksRequired := api.Endpoint == protocol.Manifest && r.Header.Get(remote.RequiredHeader) != ""
	if asksRequired && found == noCredentials {
		// The answer depends on the credentials, which clients do not send to a repository that every client reads.
		s.challenge(w, r, "log in, or get an anonymous token from "+tokenPath)
		return
	}
	if found == noCredentials {
		w = &challengeMissing{ResponseWriter: w, challenge: func(w http.ResponseWriter) {
			s.challenge(w, r, "the repository does not exist, or requires credentials")
		}}
	}
	if allowed && api.Endpoint == protocol.Blob && api.Repository == indexRepository {
		if blob, err := oci.ParseDigest(api.Reference); err == nil {
			if allowed, err = s.indexBlobs.mayRead(r.Context(), subject, blob); err != nil {
				writeRefusal(w, r, err)
				return
			}
		}
	}
	if !allowed {
		s.readNothing(w, r, api)
		return
	}
	if asksRequired && policy.May(subject.WithoutRequested(), api.Repository, access.Delete) &&
		s.fullView().Requires(api.Repository, api.Reference) {
		w.Header().Set(remote.RequiredHeader, "true")
	}
	if api.Repository == indexRepository && api.Endpoint == protocol.Manifest {
		s.readIndexManifest(w, r, api, subject)
		return
	}
	s.images.ServeHTTP(w, withPath(r, api))
}

// absentRepository is the repository for which the responses for repositories are made that a client may not read. No
// client can create it.
const absentRepository = "none"

// readNothing serves a read of a repository that does not exist, or that the sender may not read. Both take the same
// time: nothing is read for the name in the request.
func (s *Server) readNothing(w http.ResponseWriter, r *http.Request, api protocol.Request) {
	s.images.ServeHTTP(w, withPath(r, protocol.Request{
		Endpoint: api.Endpoint, Repository: absentRepository, Reference: api.Reference,
	}))
}

// withPath returns a request for a path, without the credentials of the client.
func withPath(r *http.Request, api protocol.Request) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Path, out.URL.RawPath = api.Path(), ""
	out.Header.Del("Authorization")
	out.Header.Del("X-Forwarded-For")
	return out
}

// write serves a change.
func (s *Server) write(
	w http.ResponseWriter, r *http.Request, api protocol.Request, subject access.Subject, found credentials,
) {
	push := &push{Server: s, api: api, subject: subject}
	actions := push.actions(r)
	if actions == nil {
		protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "the method is not allowed")
		return
	}
	if !s.mayAny(subject, api.Repository, actions) {
		s.refuse(w, r, api, subject, found, actions)
		return
	}
	if refused := s.limiter.Disk.Check(); refused != nil && r.Method != http.MethodDelete {
		refused.Write(w, r)
		return
	}
	if api.Endpoint == protocol.Manifest {
		push.manifest(w, r)
		return
	}
	if api.Endpoint == protocol.StartUpload {
		if err := push.checkRepository(r.Context()); err != nil {
			writeRefusal(w, r, err)
			return
		}
		if push.isNew && !s.limitRepositories(w, r, api.Repository) {
			return
		}
		s.limitMount(r, subject)
	}
	s.uploads.ServeHTTP(w, withPath(r, api))
}

// changesNeedToken returns the message for a change without an identity that needs one of the actions.
func (s *Server) changesNeedToken(repository string, actions []access.Action) string {
	action := access.Create
	if !slices.Contains(actions, action) {
		action = actions[0]
	}
	return fmt.Sprintf(
		"pushes and deletes need a token; %s, and log in with `xpkg login %s`", createToken(repository, action),
		s.options.Host,
	)
}

// createToken returns the advice to create a token for an action on a repository. A client does not learn the folder of
// the server.
func createToken(repository string, action access.Action) string {
	return fmt.Sprintf("on the machine of the server, create one with `xpkg registry token create --dir DIR --repository %s --action %s`, where DIR is the folder of the server",
		wording.ShellWord(repository), action)
}

func (s *Server) mayAny(subject access.Subject, repository string, actions []access.Action) bool {
	policy := s.policy()
	return slices.ContainsFunc(actions, func(a access.Action) bool { return policy.May(subject, repository, a) })
}

// refuse responds to a change that the policy does not allow. The response does not depend on the existence of a
// repository that the subject cannot read.
func (s *Server) refuse(
	w http.ResponseWriter, r *http.Request, api protocol.Request, subject access.Subject, found credentials,
	actions []access.Action,
) {
	switch {
	case found == noCredentials, s.mayAny(subject.WithoutRequested(), api.Repository, actions):
		s.challenge(w, r, s.changesNeedToken(api.Repository, actions))
	case subject.IsAnonymous():
		// An anonymous bearer token.
		protocol.WriteError(w, r, http.StatusForbidden, protocol.CodeDenied, s.changesNeedToken(api.Repository, actions))
	default:
		protocol.WriteError(w, r, http.StatusForbidden, protocol.CodeDenied, "the token does not allow this change of "+
			api.Repository)
	}
}

// limitMount removes the request to mount a blob of another repository unless the subject may read that repository, and
// all of its blobs. The client then uploads the blob.
func (s *Server) limitMount(r *http.Request, subject access.Subject) {
	query := r.URL.Query()
	from := query.Get("from")
	// Registries do not all read the same one of several values.
	isClear := len(query["mount"]) == 1 && len(query["from"]) == 1
	if !query.Has("mount") || isClear && from != indexRepository && s.policy().May(subject, from, access.Read) {
		return
	}
	query.Del("mount")
	query.Del("from")
	r.URL.RawQuery = query.Encode()
}

// writeRefusal writes the response for an error of a rule.
func writeRefusal(w http.ResponseWriter, r *http.Request, err error) {
	status, code := http.StatusInternalServerError, protocol.CodeUnknown
	switch errcode.From(err).Code.Class.Name {
	case errcode.Conflict.Name:
		status, code = http.StatusConflict, protocol.CodeDenied
	case errcode.Unauthorized.Name:
		status, code = http.StatusForbidden, protocol.CodeDenied
	case errcode.Invalid.Name, errcode.Limit.Name, errcode.Usage.Name:
		status, code = http.StatusBadRequest, protocol.CodeManifestInvalid
	case errcode.Unavailable.Name:
		status = http.StatusServiceUnavailable
	}
	if fault := (backendFault{}); errors.As(err, &fault) {
		status, code = http.StatusBadGateway, protocol.CodeUnknown
	}
	if errors.Is(err, ErrDamaged) {
		status, code = http.StatusInternalServerError, protocol.CodeDamaged // A repetition does not help.
	}
	protocol.WriteError(w, r, status, code, err.Error())
}

// challengeMissing replaces the response for missing content by a challenge.
type challengeMissing struct {
	http.ResponseWriter
	challenge func(http.ResponseWriter)
	replaced  bool
}

// WriteHeader implements [http.ResponseWriter].
func (c *challengeMissing) WriteHeader(status int) {
	if status != http.StatusNotFound {
		c.ResponseWriter.WriteHeader(status)
		return
	}
	c.replaced = true
	header := c.Header()
	for name := range header {
		header.Del(name)
	}
	c.challenge(c.ResponseWriter)
}

// Write implements [http.ResponseWriter].
func (c *challengeMissing) Write(p []byte) (int, error) {
	if c.replaced {
		return len(p), nil
	}
	return c.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (c *challengeMissing) Unwrap() http.ResponseWriter { return c.ResponseWriter }
