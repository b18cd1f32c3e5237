package registry

import (
	"errors"
	"net/http"
	"os"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// healthPath is the path at which the server reports whether it works.
const healthPath = "/healthz"

// serveHealth reports whether the server can serve requests, and the number of damaged repositories and contents among
// those that the client may read. A server with damage serves everything else.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	if err := s.site.Healthy(); err != nil {
		s.log.Warn("not ready", "error", err)
		protocol.WriteJSON(w, r, http.StatusServiceUnavailable, map[string]string{"status": "the index is not ready"})
		return
	}
	if err := s.probe(); err != nil {
		s.log.Error("not healthy: content cannot be read", "error", err)
		protocol.WriteJSON(w, r, http.StatusServiceUnavailable, map[string]string{"status": "content cannot be read"})
		return
	}
	answer := health{Status: "ok"}
	if found := s.damageIn(r); found != (storage.Damage{}) {
		answer = health{"damaged", found.Repositories, found.Contents}
	}
	protocol.WriteJSON(w, r, http.StatusOK, answer)
}

// probe fails if content cannot be read with new descriptors. One check runs at a time, so that checks take few of
// them.
func (s *Server) probe() error {
	s.probing.Lock()
	defer s.probing.Unlock()
	folder, err := os.Open(s.options.Dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Close(), s.images.probe())
}

// damageIn returns the damage in the repositories that the sender of a request may read.
func (s *Server) damageIn(r *http.Request) storage.Damage {
	policy := s.policy()
	subject, _ := s.identifier.subject(r)
	return s.images.damage(func(repository string) bool { return policy.May(subject, repository, access.Read) })
}

// health is the response of a server that can serve requests.
type health struct {
	Status              string `json:"status"`
	DamagedRepositories int    `json:"damagedRepositories,omitempty"`
	DamagedContents     int    `json:"damagedContents,omitempty"`
}
