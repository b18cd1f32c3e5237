// Package errcodes lists the error codes of all packages below the command line,
// for the reference documentation and for looking up a code by its name.
package errcodes

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/cloudidentity"
	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/composition/comptest"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	installs "github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/devloop"
	"github.com/xpkg-dev/xpkg/internal/doctor"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/function/call"
	"github.com/xpkg-dev/xpkg/internal/function/process"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/localcore"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/internal/registry/web/export"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/signing"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/internal/up/program"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// All returns every code, ordered by name.
func All() []errcode.Code {
	all := slices.Concat(
		[]errcode.Code{errcode.Unknown},
		archive.Codes(), image.Codes(), remote.Codes(), store.Codes(), unpack.Codes(),
		access.Codes(), activation.Codes(), registry.Codes(), mirror.Codes(), tokens.Codes(), apply.Codes(),
		bootstrap.Codes(), bundle.Codes(), cache.Codes(),
		certificates.Codes(), child.Codes(), contention.Codes(),
		cloudidentity.Codes(), credentials.Codes(), crossplane.Codes(), deployment.Codes(), doctor.Codes(), fetch.Codes(),
		graph.Codes(), imageconfig.Codes(),
		localcore.Codes(), catalog.Codes(), export.Codes(),
		installs.Codes(), call.Codes(), composition.Codes(), comptest.Codes(), devloop.Codes(), process.Codes(),
		indexer.Codes(), indexlayer.Codes(), leader.Codes(), lockfile.Codes(), manifests.Codes(), migration.Codes(),
		oci.Codes(), packageapi.Codes(), planner.Codes(),
		rbac.Codes(), resolver.Codes(), revision.Codes(), runtime.Codes(), runtimedefaults.Codes(), sandbox.Codes(),
		signature.Codes(), signing.Codes(),
		logs.Codes(),
		solver.Codes(), firstgen.Codes(), provide.Codes(), up.Codes(), datadir.Codes(), program.Codes(), validation.Codes(),
		webhooks.Codes(),
		xpkg.Codes(), check.Codes(), index.Codes(),
	)
	slices.SortFunc(all, func(a, b errcode.Code) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Named returns the code with the given name, and false if there is none.
func Named(name string) (errcode.Code, bool) {
	for _, c := range All() {
		if c.Name == name {
			return c, true
		}
	}
	return errcode.Code{}, false
}
