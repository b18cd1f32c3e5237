package registry

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/upload"
)

// limitClients prepares the limits for clients.
func (s *Server) limitClients() {
	if s.options.Limits == nil {
		ofProcess := limit.OfProcess()
		s.options.Limits = &ofProcess
	}
	disk := &limit.Disk{}
	if s.options.Backend == nil {
		disk.Dir = filepath.Join(s.options.Dir, imagesFolder)
	}
	s.limiter = limit.New(*s.options.Limits, disk)
	s.uploads = upload.Limit(upload.Options{
		Most: s.options.MaxUpload, Limiter: s.limiter,
		Hint: "start the server with a larger `xpkg registry serve --max-upload-size`",
	}, s.images)
}

// Serve serves the connections of a listener within the limits, with TLS if the HTTP server has certificates.
func (s *Server) Serve(server *http.Server, l net.Listener) error { return s.limiter.Serve(server, l) }

// client returns the client of a request for the limits. It fails if the server cannot check its credentials now.
func (s *Server) client(r *http.Request) (limit.Client, error) {
	if r.Header.Get("Authorization") != "" {
		if err := s.identifier.tokens.Check(); err != nil {
			s.log.Error("cannot check credentials", "error", err)
			return limit.Client{}, err
		}
	}
	subject, _ := s.identifier.subject(r)
	switch {
	case subject.User != "":
		return limit.User(subject.User), nil
	case !subject.IsAnonymous():
		return limit.User(fmt.Sprint(subject.Groups, subject.Grants)), nil // An identity of a CI system.
	}
	return limit.Address(r, s.options.URL != ""), nil
}

// kindOf returns the kind of a request for the limits.
func (s *Server) kindOf(r *http.Request) limit.Kind {
	switch path := r.URL.Path; {
	case path == healthPath:
		return limit.Check
	case path == tokenPath, path == exchangePath, path == LoginPath, strings.HasPrefix(path, "/static/"):
		return limit.Plain
	case strings.HasPrefix(path, protocol.Root):
		return KindOf(r)
	}
	return limit.Work
}

// KindOf returns the kind of a request of the OCI distribution API for the limits.
func KindOf(r *http.Request) limit.Kind {
	api, _ := protocol.Parse(r.URL.Path)
	switch {
	case api.Endpoint == protocol.Repositories, api.Endpoint == protocol.Tags, api.Endpoint == protocol.Referrers:
		return limit.Work
	case api.Endpoint == protocol.Manifest && !protocol.IsRead(r):
		return limit.Manifest
	}
	return limit.Plain
}

// limitRepositories counts a repository without a tag to which an upload is started. It responds to a request beyond
// the limit, and reports whether the upload may start.
func (s *Server) limitRepositories(w http.ResponseWriter, r *http.Request, repository string) bool {
	client, _ := limit.ClientOf(r.Context())
	entry, _, _, refused := s.limiter.Repositories.Use(client, repository)
	if refused != nil {
		refused.Write(w, r)
		return false
	}
	s.limiter.Repositories.Done(entry)
	return true
}
