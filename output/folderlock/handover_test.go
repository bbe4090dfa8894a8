package folderlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandover: both sides agree on one time. No file is left.
func TestHandover(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		if _, ok := Asked(dir); ok {
			t.Error("nobody has asked")
		}
		var theirs time.Time
		go func() {
			for ok := false; !ok; time.Sleep(time.Second) {
				theirs, ok = Asked(dir)
			}
		}()
		ours, err := Ask(t.Context(), dir)
		synctest.Wait()
		if err != nil || !ours.Equal(theirs) || time.Until(ours) < withdrawAhead {
			t.Errorf("%v and %v, %v", ours, theirs, err)
		}
		time.Sleep(2 * time.Second)
	})
	isEmpty(t, dir)
}

// TestNobodyAnswers: an agent that does not agree in time does not agree later, either.
func TestNobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		if _, err := Ask(t.Context(), dir); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Ask(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if _, ok := Asked(dir); ok {
			t.Error("it is withdrawn")
		}
	})
	isEmpty(t, dir)
}

// TestOldQuestion: an agent was killed while it asked. Its question does not end the next agent in the folder.
func TestOldQuestion(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "x", "1", "99999999999999999999", "9000000000000000000"} {
		if err := os.WriteFile(filepath.Join(dir, asked), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := Asked(dir); ok {
			t.Errorf("%q is agreed to", text)
		}
		isEmpty(t, dir)
	}
}

// TestQuestionIsAPipe: another user who may write into the folder cannot block the agent.
func TestQuestionIsAPipe(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, asked)
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, ok := Asked(dir); ok {
		t.Error("a pipe is agreed to")
	}
	isEmpty(t, dir)
}

func isEmpty(t *testing.T, dir string) {
	t.Helper()
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}
