use std::io::ErrorKind;

use super::*;

/// A server that sends back what it gets, for as long as the test lives.
async fn echo(tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await.ok();
            });
        }
    });
    port
}

async fn ask(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    tokio::time::timeout(Duration::from_millis(300), stream.read_exact(&mut answer))
        .await
        .map_err(|_| ErrorKind::TimedOut)??;
    Ok(answer)
}

async fn connect(proxy: &Proxy) -> std::io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await
}

#[tokio::test]
async fn what_is_sent_over_a_cut_line_arrives_late_and_nobody_is_told() {
    let mut tasks = JoinSet::new();
    let proxy = Proxy::to(echo(&mut tasks).await);
    let mut stream = connect(&proxy).await.expect("it listens");
    assert_eq!(ask(&mut stream, b"one").await.expect("the line is whole"), b"one");
    proxy.cut();
    let mut fresh = connect(&proxy).await.expect("the kernel accepts");
    assert_eq!(ask(&mut stream, b"two").await.expect_err("cut").kind(), ErrorKind::TimedOut);
    assert_eq!(ask(&mut fresh, b"new").await.expect_err("cut").kind(), ErrorKind::TimedOut);
    proxy.heal();
    for (stream, text) in [(&mut stream, b"two"), (&mut fresh, b"new")] {
        let mut late = [0; 3];
        stream.read_exact(&mut late).await.expect("the line is whole");
        assert_eq!(&late, text);
    }
    assert_eq!((proxy.accepted(), proxy.open()), (2, 2));
}

#[tokio::test]
async fn an_answer_is_lost_whose_request_arrived() {
    let mut tasks = JoinSet::new();
    let proxy = Proxy::to(echo(&mut tasks).await);
    let mut stream = connect(&proxy).await.expect("it listens");
    ask(&mut stream, b"one").await.expect("the line is whole");
    proxy.cut_answers();
    let before = proxy.request_bytes();
    assert_eq!(ask(&mut stream, b"two").await.expect_err("cut").kind(), ErrorKind::TimedOut);
    assert_eq!((proxy.request_bytes() - before, proxy.answer_bytes()), (3, 3));
    proxy.reset();
    assert_eq!(stream.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_refused_line_resets_what_is_open_and_is_taken_again_when_healed() {
    let mut tasks = JoinSet::new();
    let proxy = Proxy::to(echo(&mut tasks).await);
    let mut stream = connect(&proxy).await.expect("it listens");
    ask(&mut stream, b"one").await.expect("the line is whole");
    proxy.refuse();
    assert_eq!(stream.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    assert_eq!(connect(&proxy).await.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    proxy.heal();
    let mut again = connect(&proxy).await.expect("it listens");
    assert_eq!(ask(&mut again, b"two").await.expect("the line is whole"), b"two");
}

#[tokio::test]
async fn a_delay_counts_in_each_direction() {
    let mut tasks = JoinSet::new();
    let proxy = Proxy::to(echo(&mut tasks).await);
    let mut stream = connect(&proxy).await.expect("it listens");
    proxy.delay(Duration::from_millis(50));
    let before = bursar::clock::boottime();
    ask(&mut stream, b"one").await.expect("within the test's patience");
    assert!(bursar::clock::boottime().since(before) >= Duration::from_millis(100));
}

#[tokio::test]
async fn an_orderly_end_passes() {
    let mut tasks = JoinSet::new();
    let proxy = Proxy::to(echo(&mut tasks).await);
    let mut stream = connect(&proxy).await.expect("it listens");
    stream.write_all(b"last words").await.expect("the line is whole");
    stream.shutdown().await.expect("the line is whole");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("no reset");
    assert_eq!(all, b"last words");
}

#[tokio::test]
async fn a_half_open_line_is_over_for_the_client_and_not_for_the_server() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let proxy = Proxy::to(listener.local_addr().expect("it is bound").port());
    let mut stream = connect(&proxy).await.expect("it listens");
    let (mut served, _) = listener.accept().await.expect("it is passed on");
    proxy.half_open();
    assert_eq!(stream.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    let told = tokio::time::timeout(Duration::from_millis(200), served.read(&mut [0; 1])).await;
    assert!(told.is_err(), "the server is told nothing: {told:?}");
    proxy.heal();
    assert_eq!(served.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_commit_arrives_whose_answer_is_lost_with_its_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let proxy = Proxy::to(listener.local_addr().expect("it is bound").port());
    proxy.reset_after_commits(1);
    let mut stream = connect(&proxy).await.expect("it listens");
    let (mut served, _) = listener.accept().await.expect("it is passed on");
    stream.write_all(b"BEGIN").await.expect("the line is whole");
    served.read_exact(&mut [0; 5]).await.expect("the line is whole");
    stream.write_all(b"Q COMMIT").await.expect("the line is whole");
    served.read_exact(&mut [0; 8]).await.expect("it arrives");
    assert_eq!(stream.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.commits_to_reset(), 0);
    let mut another = connect(&proxy).await.expect("it listens");
    let (mut served, _) = listener.accept().await.expect("it is passed on");
    another.write_all(b"COMMIT").await.expect("the line is whole");
    served.read_exact(&mut [0; 6]).await.expect("it arrives");
    served.write_all(b"done").await.expect("the line is whole");
    another.read_exact(&mut [0; 4]).await.expect("the next one is answered");
}

#[tokio::test]
async fn the_answer_of_the_next_commit_is_held_until_the_line_is_whole() {
    let mut tasks = JoinSet::new();
    let proxy = Proxy::to(echo(&mut tasks).await);
    let mut stream = connect(&proxy).await.expect("it listens");
    proxy.hold_behind_commit();
    assert_eq!(ask(&mut stream, b"select").await.expect("no commit"), b"select");
    assert!(!proxy.holds_a_commit());
    assert_eq!(ask(&mut stream, b"COMMIT").await.expect_err("held").kind(), ErrorKind::TimedOut);
    assert!(proxy.holds_a_commit());
    proxy.heal();
    let mut late = [0; 6];
    stream.read_exact(&mut late).await.expect("the line is whole");
    assert_eq!((&late, proxy.holds_a_commit()), (b"COMMIT", false));
    assert_eq!(ask(&mut stream, b"COMMIT").await.expect("one only"), b"COMMIT");
}
