// Package registry protects the OCI registry of a control plane that runs on this
// machine. It wraps the handler that stores the images.
//
// Reads are anonymous, so that the manager, kubelets and runtimes need no secret. Writes need the
// token of the control plane, because every process of this machine, including runtimes in their
// sandboxes, can connect to the loopback interface. Clients authenticate with the token
// authentication of registries: the response to a request without credentials is a Bearer
// challenge, and the token server, a path of the same registry, exchanges the user's credentials
// for a bearer token. Clients without credentials get a token that allows reads.
package registry

import (
	"net/http"
	"strings"

	sites "github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/internal/registry/upload"
)

// Options configure the protection of a registry.
type Options struct {
	// Token is the secret that allows writes. Basic credentials carry it as the
	// password, with any user name.
	Token string
	// Login is the command that stores the token for other clients, for error messages.
	Login string
	// MaxUpload is the maximum size of a blob in bytes.
	MaxUpload int64
	// Limiter applies the limits for clients.
	Limiter *limit.Limiter
	// Store has the content of the images.
	Store *storage.Store
	// Uses returns the references of installed packages to this registry. It is called when a tag
	// moves or content is deleted. It may be nil; then no changes are reported.
	Uses Uses
	// Repositories serves the list of the repositories. If it is nil, the registry does not list them.
	Repositories http.Handler
	// Pages serves reads of the paths beside the API: the web pages. If it is nil, there are none.
	Pages http.Handler
	// Changed is called after a change of a repository. It may be nil.
	Changed func(repository string)
	// Report is called with a message for the user about each change of content to which an
	// installed package refers. It may be nil.
	Report func(message string)
}

// Handler returns a handler that forwards only permitted requests to images, and reads of other paths to the pages.
func Handler(images http.Handler, o Options) http.Handler {
	limited := upload.Limit(upload.Options{
		Most: o.MaxUpload, Hint: "start the control plane with a larger `xpkg up --max-upload-size`", Limiter: o.Limiter,
	}, reportChanges(o, images))
	protected := guard(withPages(o, authorize(o, o.withRoom(withList(o, notify(o, limited))))))
	return limit.Transfers(o.Limiter.Handler(o.client, kindOf, protected))
}

// client returns the client of a request for the limits.
func (o Options) client(r *http.Request) (limit.Client, error) {
	if o.accessOf(r) == writeAccess {
		return limit.User("owner of the control plane"), nil
	}
	return limit.Address(r, false), nil
}

// kindOf returns the kind of a request for the limits.
func kindOf(r *http.Request) limit.Kind {
	if strings.HasPrefix(r.URL.Path, pingPath) || r.URL.Path == tokenPath {
		return sites.KindOf(r)
	}
	return limit.Work
}

// withRoom refuses changes other than deletions while the disk has no room.
func (o Options) withRoom(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := o.Limiter.Disk.Check(); refused != nil && !isRead(r) && r.Method != http.MethodDelete {
			refused.Write(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
