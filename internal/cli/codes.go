package cli

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrAmbiguous,
		ErrCAFile,
		ErrCluster,
		ErrDeclined,
		ErrDockerConfig,
		ErrExtensions,
		ErrInstalledOtherwise,
		ErrInterrupted,
		ErrKubeconfig,
		ErrLockDowngrade,
		ErrLockNotFound,
		ErrLockStale,
		ErrLockTag,
		ErrLockWrite,
		ErrLogsElsewhere,
		ErrManagerNotReady,
		ErrNeedsUnknown,
		ErrNoLogs,
		ErrNoPackageAPI,
		ErrNotConfirmed,
		ErrNotLocked,
		ErrPackageNotFound,
		ErrPlanRead,
		ErrPlanWrite,
		ErrReadFile,
		ErrRefusedByServer,
		ErrRuntimeImage,
		ErrStillGoing,
		ErrUsage,
		ErrWait,
	}
}
