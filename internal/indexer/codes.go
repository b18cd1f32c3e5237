package indexer

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of errors.
var (
	ErrEmptySource = errcode.Code{
		Name: "EmptySource", Class: errcode.Unavailable,
		Cause: "A registry of an index lists none of its packages any more. Some registries respond so while their storage fails.",
		Fix:   "Update the index when the registry lists its packages again. If all of them were deleted, `xpkg index build` builds the index without them.",
	}
	ErrExpiredIndex = errcode.Code{
		Name: "ExpiredIndex", Class: errcode.Untrusted,
		Cause: "The time until which an index is valid has passed: the registry may withhold newer states of it.",
		Fix:   "Ask the operator of the index to update it with `xpkg index update`.",
	}
	ErrForkedIndex = errcode.Code{
		Name: "ForkedIndex", Class: errcode.Untrusted,
		Cause: "A registry returns a state of an index that does not continue the state which this machine has seen.",
		Fix:   "Do not trust the registry until its operator explains it. If the index was built anew or renamed on purpose, accept its new state with the option `--forget` of `xpkg index show`.",
	}
	ErrIndexKey = errcode.Code{
		Name: "IndexKey", Class: errcode.Invalid,
		Cause: "A key for the signatures of an index cannot be used.",
		Fix:   "Use a key in PEM: ECDSA with the curve P-256, or Ed25519. `openssl genpkey -algorithm ed25519` creates a private key, and `openssl pkey -pubout` prints its public key.",
	}
	ErrIndexSignature = errcode.Code{
		Name: "IndexSignature", Class: errcode.Untrusted,
		Cause: "The state of an index is not signed by a key that this machine trusts.",
		Fix:   "Ask the operator of the index for its public key, or to sign the index with `xpkg index update --sign-key`. Do not use the index until then.",
	}
	ErrNoIndex = errcode.Code{
		Name: "NoIndex", Class: errcode.Usage,
		Cause: "The command needs an index, and none is configured.",
		Fix:   "Name one with --index, or set XPKG_INDEX.",
	}
	ErrStaleIndex = errcode.Code{
		Name: "StaleIndex", Class: errcode.Untrusted,
		Cause: "A registry returns an older state of an index than this machine has seen.",
		Fix:   "Use the registry that has the newest state. If the index was restored on purpose, accept its older state with the option `--forget` of `xpkg index show`.",
	}
	ErrIndexNotFound = errcode.Code{
		Name: "IndexNotFound", Class: errcode.NotFound,
		Cause: "The registry has no index under the reference.",
		Fix:   "Check the spelling, or create the index with `xpkg index build`.",
	}
	ErrNothingFound = errcode.Code{
		Name: "NothingFound", Class: errcode.NotFound,
		Cause: "No kind and no package of the indexes matches.",
		Fix:   "Try fewer or shorter words, or another index.",
	}
	ErrIndexChanged = errcode.Code{
		Name: "IndexChanged", Class: errcode.Conflict,
		Cause: "Another process updated the index at the same time.",
		Fix:   "Run the command again.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrEmptySource,
		ErrExpiredIndex,
		ErrForkedIndex,
		ErrIndexChanged,
		ErrIndexKey,
		ErrIndexNotFound,
		ErrIndexSignature,
		ErrNoIndex,
		ErrNothingFound,
		ErrStaleIndex,
	}
}
