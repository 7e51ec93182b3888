package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Shell is a text run by the system's own shell, whatever PATH and ComSpec say. /d: no AutoRun; /s: the outer quotes only
// are taken off.
func Shell(text string) (*exec.Cmd, error) {
	dir, err := windows.GetSystemDirectory()
	if err != nil {
		return nil, errors.New("there is no system directory")
	}
	cmd := exec.Command(filepath.Join(dir, "cmd.exe"))
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /d /s /c "` + text + `"`}
	return cmd, nil
}

// OwnGroup lets cmd be sent a console break of its own, and opens no window for it.
func OwnGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
	cmd.SysProcAttr.HideWindow = true
}

// group is a job object: a process with its descendants, which cannot leave it.
type group struct {
	pid uint32
	job windows.Handle // 0 when there is none, and then only the process itself can be ended
	p   *os.Process

	tag, box string
	serves   bool
}

// start starts a program and puts it in a job that ends with the daemon. What it starts in the microseconds before that is
// not in it.
func (g *group) start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	p := cmd.Process
	g.pid, g.p = uint32(p.Pid), p
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil // then only p itself can be ended
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		err = p.WithHandle(func(h uintptr) {
			if windows.AssignProcessToJobObject(job, windows.Handle(h)) == nil {
				g.job = job
			}
		})
	}
	if err != nil || g.job == 0 {
		g.job = 0
		windows.CloseHandle(job)
	}
	return nil
}

func collectOrphans() {}

func (g *group) close() {
	if g.job != 0 {
		windows.CloseHandle(g.job)
	}
}

// end sends a console break, and ends what is left after grace. It returns at once when nothing is left.
func (g *group) end(grace time.Duration) {
	if g.job == 0 {
		_ = g.p.Kill()
		return
	}
	if g.gone(0) {
		return
	}
	if windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.pid) == nil && g.gone(grace) {
		return
	}
	_ = windows.TerminateJobObject(g.job, 1)
	g.gone(reapTime)
}

// gone waits until no process of the job runs, at most for d.
func (g *group) gone(d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(5 * time.Millisecond) {
		var info struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
			userTime, kernelTime, periodUser, periodKernel int64
			pageFaults, total, active, terminated          uint32
		}
		err := windows.QueryInformationJobObject(g.job, 1, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
		if err == nil && info.active == 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

func exitStatus(ps *os.ProcessState) (code int, signal string) { return ps.ExitCode(), "" }
