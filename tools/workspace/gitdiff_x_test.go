package workspace
import ("testing";"math/rand/v2";"os";"os/exec";"path/filepath";"strings";"slices";"fmt")
func TestGitX(t *testing.T){
 bad:=0
 for seed:=range uint64(400){ r:=rand.New(rand.NewPCG(seed,1)); dir:=t.TempDir()
  exec.Command("git","init","-q",dir).Run()
  names:=[]string{"a","b","ab","x.log","y.log","tmp","z.o","A b","#h","!n","{q}"}
  pat:=[]string{"a","b","/a","a/","*.log","!x.log","!a","/b/","a/b","/a/*","!/a/b","**/a","a/**","a/**/b","**/tmp/**","*b","[ab]","?","x.*","!x.*","\\#h","\\!n","# c","","  ","a ","A\\ b","A b","{q}","*","!*/","!*.o","/*/b","b/*","**","a/b/","!b/","tmp/*","!tmp/z.o","*/x.log","[!a]","[^b]","/**/b","a**","**b","a/**/"}
  write:=func(p,s string){p=filepath.Join(dir,p); os.MkdirAll(filepath.Dir(p),0o777); os.WriteFile(p,[]byte(s),0o666)}
  for range 40 { p:=""; for range 1+r.IntN(3){p=filepath.Join(p,names[r.IntN(len(names))])}; write(p,"x") }
  ig:=func()string{s:="";for range 1+r.IntN(5){s+=pat[r.IntN(len(pat))]+"\n"};return s}
  desc:=""
  put:=func(p string){s:=ig();write(p,s);desc+=fmt.Sprintf("%s: %q\n",p,s)}
  put(".gitignore"); if r.IntN(2)==0{put("a/.gitignore")}; if r.IntN(2)==0 {put("a/b/.gitignore")}; if r.IntN(2)==0 {put(".git/info/exclude")}
  c:=exec.Command("git","-c","core.excludesFile=/dev/null","ls-files","-z","-o","--exclude-standard"); c.Dir=dir; out,err:=c.Output(); if err!=nil{t.Fatal(err)}
  want:=strings.Split(strings.TrimSuffix(string(out),"\x00"),"\x00"); if len(out)==0{want=nil}; slices.Sort(want)
  w,_:=Open(dir,nil); got:=walk(t,w,"."); w.Close()
  if !slices.Equal(got,want){ bad++; if bad<6 {extra:=[]string{};miss:=[]string{}; for _,g:=range got{if !slices.Contains(want,g){extra=append(extra,g)}}; for _,g:=range want{if !slices.Contains(got,g){miss=append(miss,g)}}; t.Errorf("seed %d\n%s extra %q\n miss %q",seed,desc,extra,miss)}}
 }
 t.Log(bad)
}
